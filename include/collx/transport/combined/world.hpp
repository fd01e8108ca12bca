// SPDX-License-Identifier: Apache-2.0
// One process's place in two worlds: that of the ranks of its host, and that of all.
#pragma once

#include "collx/core/array.hpp"
#include "collx/core/atomic_word.hpp"
#include "collx/core/error.hpp"
#include "collx/transport/mapped/alarm.hpp"
#include "collx/transport/settings.hpp"

namespace collx::inline abi_1::transport {

// Ranks are those of the far world; `near_rank` tells which of them the near one has, and as what.
template <class NearWorld, class FarWorld>
class composite_world {
 public:
  // Takes over a reference on each. `hosts[r]`: equal numbers for ranks of one host, whose order in the near
  // world is that of their ranks.
  COLLX_COLD composite_world(NearWorld* near, FarWorld* far, array<std::uint64_t> const& hosts)
      : near_(near), far_(far), near_ranks_(hosts.size()) {
    rank_t next = 0;
    for (std::size_t r = 0; r < hosts.size(); ++r) {
      bool const here = hosts[r] == hosts[static_cast<std::size_t>(far->rank())];
      near_ranks_[r] = here ? next++ : no_rank;
    }
  }
  composite_world(composite_world const&) = delete;

  [[nodiscard]] NearWorld& near() const noexcept { return *near_; }
  [[nodiscard]] FarWorld& far() const noexcept { return *far_; }
  [[nodiscard]] rank_t rank() const noexcept { return far_->rank(); }
  [[nodiscard]] rank_t size() const noexcept { return far_->size(); }
  [[nodiscard]] settings const& chosen() const noexcept { return far_->chosen(); }
  [[nodiscard]] std::uint64_t strangers() noexcept
    requires requires(FarWorld& far) { far.strangers(); }
  {
    return far_->strangers();
  }
  // no_rank: on another host.
  [[nodiscard]] rank_t near_rank(rank_t rank) const noexcept {
    return near_ranks_[static_cast<std::size_t>(rank)];
  }

  // Whether all ranks are on this host.
  [[nodiscard]] bool all_near() const noexcept { return near_->size() == far_->size(); }

  // Relaxed: taking a reference needs one already. Acquire-release: the last to drop sees all uses.
  void keep() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  COLLX_COLD void drop() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    near_->drop();
    far_->drop();
    delete this;
  }

  [[nodiscard]] std::byte* allocate(std::size_t bytes) { return near_->allocate(bytes); }
  void deallocate(std::byte* p, std::size_t bytes) noexcept { near_->deallocate(p, bytes); }

  // What one world knows of a failure the other one is told. The far one also looks after ranks of this host:
  // it knows whom they wait for, if there is a connection with them already.
  [[nodiscard]] COLLX_COLD status interrupted(rank_t peer, std::uint64_t timeout_us) noexcept {
    rank_t const nearby_peer = peer == no_rank ? no_rank : near_rank(peer);
    status const nearby = near_->interrupted(nearby_peer);
    status const farther = far_->interrupted(peer, timeout_us, nearby_peer != no_rank);
    if (nearby != status::aborted && farther != status::aborted)
      return nearby != status::ok ? nearby : farther;
    mapped::first_failure const first = first_failure();
    if (nearby != status::aborted) near_->abort(first.code, first.reporter, first.culprit);
    if (farther != status::aborted) far_->abort(first.code, first.reporter, first.culprit);
    return status::aborted;
  }

  // Both alarms speak of ranks as the far world counts them; the near one only keeps the numbers.
  COLLX_COLD void abort(status code, rank_t reporter, rank_t culprit) noexcept {
    near_->abort(code, reporter, culprit);
    far_->abort(code, reporter, culprit);
  }
  [[nodiscard]] mapped::first_failure first_failure() const noexcept {
    mapped::first_failure const first = near_->first_failure();
    return first.code != status::ok ? first : far_->first_failure();
  }

 private:
  ~composite_world() = default;

  NearWorld* near_;
  FarWorld* far_;
  array<rank_t> near_ranks_;  // by rank of the far world
  atomic_word<std::int32_t> references_{1};
};

}  // namespace collx::inline abi_1::transport
