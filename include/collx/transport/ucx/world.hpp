// SPDX-License-Identifier: Apache-2.0
// One process's place among those it talks to over UCX.
#pragma once

#include "collx/transport/matched/world.hpp"
#include "collx/transport/ucx/traffic.hpp"

namespace collx::inline abi_1::transport {

class ucx_world : public matched::world<ucx_world, ucx_parts::traffic> {
  using base = matched::world<ucx_world, ucx_parts::traffic>;
  friend base;

 public:
  static constexpr char const* transport_name = "ucx";

  // `cards[r]`: of rank r.
  COLLX_COLD ucx_world(ucx_parts::worker by, array<ucx_parts::card> cards, rank_t rank,
                       settings const& chosen)
      : base(rank, static_cast<rank_t>(cards.size()), chosen),
        links_(static_cast<ucx_parts::worker&&>(by), static_cast<array<ucx_parts::card>&&>(cards), rank) {}

  [[nodiscard]] ucx_parts::wire wire(int number) noexcept { return {&links_, number}; }
  [[nodiscard]] static constexpr int number_max() noexcept { return (1 << 24) - 1; }  // see traffic::tag()

 private:
  COLLX_COLD ~ucx_world() {
    if (has_failed()) links_.linger(now_us() + patience_us);
    else links_.part(deadline_in(chosen().timeout_us));
    links_.cut(now_us() + patience_us);
  }

  [[nodiscard]] static bool is_over() noexcept { return false; }

  COLLX_COLD void hear() noexcept {
    links_.progress();
    mapped::first_failure what;
    if (links_.has_heard(what)) raise(what);
  }

  // Only some ranks have an endpoint for each other, so who hears of it tells those it knows.
  COLLX_COLD void tell_all(mapped::first_failure const& first) noexcept { links_.tell_alarm(first); }
  [[nodiscard]] bool has_told() noexcept {
    links_.progress();  // who has no communicator yet does not look otherwise
    return links_.has_told();
  }

  // A large message that is arriving ends only with its endpoint.
  COLLX_COLD void give_up() noexcept {
    if (stop_all()) return;
    links_.cut(now_us() + patience_us);
    (void)settles_within(patience_us);
  }

  ucx_parts::links links_;
};

}  // namespace collx::inline abi_1::transport
