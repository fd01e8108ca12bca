// SPDX-License-Identifier: Apache-2.0
// How ranks that post messages to a library become members of a communicator: of the world, or of a part.
#pragma once

#include <bit>

#include "collx/communicator.hpp"
#include "collx/core/processors.hpp"
#include "collx/transport/everybody.hpp"
#include "collx/transport/matched/endpoint.hpp"
#include "collx/transport/reservation.hpp"

namespace collx::inline abi_1::transport::matched {

template <class Transport>
struct membership {
  using endpoint = typename Transport::endpoint;
  using engine_type = exec::engine<endpoint>;
  using world_type = typename Transport::world;

  // The communicator of everybody. Takes no reference on the world.
  [[nodiscard]] static engine_type* join_world(world_type& world) {
    return new engine_type(world.chosen().timeout_us, wakefulness_of(world), world, 0,
                           everybody(world.size()), world.rank());
  }

  // Every member says which numbers it could give; the lowest that all could is taken. Groups without a rank
  // in common may have the same: no two of their messages have the same sender and receiver.
  using reservation = transport::reservation;
  [[nodiscard]] static reservation reserve(engine_type& parent, rank_t, rank_t) {
    return {parent.endpoint().space().free_numbers()};
  }
  [[nodiscard]] static engine_type* assemble(engine_type& parent, array<rank_t> members, rank_t my_rank,
                                             array<std::uint64_t> const& tokens, reservation&&) {
    std::uint64_t free_for_all = ~std::uint64_t{0};
    for (std::uint64_t const token : tokens) free_for_all &= token;
    if (free_for_all == 0)
      throw error(status::out_of_memory,
                  "split: the ranks of the new group are in 64 communicators of this transport already, all "
                  "together; "
                  "end some first");
    return new engine_type(parent.timeout_us(), parent.wakefulness(), parent.endpoint().space(),
                           std::countr_zero(free_for_all), static_cast<array<rank_t>&&>(members), my_rank);
  }

 private:
  // A look goes through the library, which looks at all its networks: some, and then the processor goes to
  // whoever wants it.
  [[nodiscard]] static exec::wakefulness wakefulness_of(world_type const& world) {
    processor_set mine;
    mine.add_those_of_this_thread();
    exec::wakefulness how = exec::wakefulness_of(world.ranks_here(), mine.count(), world.chosen().yield_us);
    if (how.spins != 0) how.spins = looks_before_yield;
    return how;
  }
  static constexpr std::uint32_t looks_before_yield = 256;
};

}  // namespace collx::inline abi_1::transport::matched
