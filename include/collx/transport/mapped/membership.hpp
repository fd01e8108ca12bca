// SPDX-License-Identifier: Apache-2.0
// How ranks of a mapped transport become members of a communicator: of the world, or of a part.
#pragma once

#include "collx/communicator.hpp"
#include "collx/transport/everybody.hpp"
#include "collx/transport/mapped/endpoint.hpp"
#include "collx/transport/reservation.hpp"

namespace collx::inline abi_1::transport::mapped {

// What threads and shm share; `Transport` is the policy the communicator is typed by.
template <class Transport>
struct membership {
  using endpoint = typename Transport::endpoint;
  using world_type = typename Transport::world;
  using engine_type = exec::engine<endpoint>;

  // The communicator of everybody. Takes no reference on the world.
  [[nodiscard]] static engine_type* join_world(world_type& world, rank_t rank) {
    exec::wakefulness const how =
        exec::wakefulness_of(world.size() > world.processors(), world.chosen().yield_us);
    return new engine_type(world.chosen().timeout_us, how, world, rank,
                           everybody(world.size()), world.blocks(), world.layout());
  }

  // First half of a split: memory for this rank's part of a communicator of `count` ranks. The
  // token, which all members learn, says where it is.
  using reservation = transport::reservation;
  [[nodiscard]] static reservation reserve(engine_type& parent, rank_t /*my_rank*/, rank_t count) {
    world_type& world = parent.endpoint().space();
    block_layout const layout{count, parent.endpoint().layout().staging_bytes};
    return {world.address_of(world.allocate_block(layout.block_bytes()), 1)};
  }

  // Instead of the second half, of a reservation that nobody else has used: another member has none.
  static void release(engine_type& parent, std::uint64_t token, rank_t count) noexcept {
    world_type& world = parent.endpoint().space();
    block_layout const layout{count, parent.endpoint().layout().staging_bytes};
    world.deallocate(world.at(token), layout.block_bytes());
  }

  // Second half: `members` are world ranks, `tokens` what each of them reserved.
  [[nodiscard]] static engine_type* assemble(engine_type& parent, array<rank_t> members, rank_t my_rank,
                                             array<std::uint64_t> const& tokens, reservation&&) {
    world_type& world = parent.endpoint().space();
    array<std::byte*> blocks(tokens.size());
    for (std::size_t r = 0; r < tokens.size(); ++r) blocks[r] = world.at(tokens[r]);
    block_layout const layout{static_cast<rank_t>(tokens.size()), parent.endpoint().layout().staging_bytes};
    return new engine_type(parent.timeout_us(), parent.wakefulness(), world, my_rank,
                           static_cast<array<rank_t>&&>(members), blocks.data(), layout);
  }
};

}  // namespace collx::inline abi_1::transport::mapped
