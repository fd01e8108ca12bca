// SPDX-License-Identifier: Apache-2.0
// How ranks that post messages to a library become members of a communicator: of the world, or of a part.
#pragma once

#include <new>

#include "collx/communicator.hpp"
#include "collx/transport/everybody.hpp"
#include "collx/transport/matched/endpoint.hpp"
#include "collx/transport/reservation.hpp"
#include "collx/transport/settings.hpp"

namespace collx::inline abi_1::transport::matched {

template <class Transport>
struct membership {
  using endpoint = typename Transport::endpoint;
  using engine_type = exec::engine<endpoint>;
  using world_type = typename Transport::world;

  // The communicator of everybody. Takes no reference on the world.
  [[nodiscard]] static engine_type* join_world(world_type& world) {
    settings const& chosen = world.chosen();
    return new engine_type(chosen.timeout_us,
                           exec::wakefulness_of(chosen.sharing, chosen.yield_us, looks_by_library), world, 0,
                           everybody(world.size()), world.rank());
  }

  // Every member says from which number on it could give any; the largest of those is taken. Groups without a
  // rank in common may have the same: no two of their messages have the same sender and receiver.
  using reservation = transport::reservation;
  [[nodiscard]] static reservation reserve(engine_type& parent, rank_t, rank_t) {
    world_type const& world = parent.endpoint().space();
    if (world.next_number() <= world.number_max())
      return {static_cast<std::uint64_t>(world.next_number())};
    throw error(status::not_supported, "split: too many communicators in one run");
  }
  [[nodiscard]] static engine_type* assemble(engine_type& parent, array<rank_t> members, rank_t my_rank,
                                             array<std::uint64_t> const& tokens, reservation&&) {
    std::uint64_t number = 0;
    for (std::uint64_t const token : tokens)
      if (token > number) number = token;
    try {
      return new engine_type(parent.timeout_us(), parent.wakefulness(), parent.endpoint().space(),
                             static_cast<int>(number), static_cast<array<rank_t>&&>(members), my_rank);
    } catch (error const&) {
      // Pages that cannot be mapped, on this rank alone: split() says what to do for the others.
      throw std::bad_alloc();
    }
  }

 private:
  // A look goes through the library, which looks at all its networks.
  static constexpr std::uint32_t looks_by_library = 256;
};

}  // namespace collx::inline abi_1::transport::matched
