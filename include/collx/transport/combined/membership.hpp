// SPDX-License-Identifier: Apache-2.0
// How ranks become members of a communicator that is partly here and partly elsewhere.
#pragma once

#include "collx/communicator.hpp"
#include "collx/transport/combined/endpoint.hpp"
#include "collx/transport/everybody.hpp"
#include "collx/transport/settings.hpp"

namespace collx::inline abi_1::transport::combined {

template <class Transport>
struct membership {
  using endpoint = typename Transport::endpoint;
  using world_type = typename Transport::world;
  using engine_type = exec::engine<endpoint>;
  using provision = typename endpoint::far_endpoint::provision;

  // The communicator of everybody. Takes no reference on the world.
  [[nodiscard]] static engine_type* join_world(world_type& world) {
    array<rank_t> members = everybody(world.size());
    array<rank_t> here = those_here(world, members);
    exec::wakefulness const how = wakefulness_of(world, here.size() == members.size());
    return new engine_type(world.chosen().timeout_us, how, world, world_id,
                           static_cast<array<rank_t>&&>(members), world.rank(),
                           static_cast<array<rank_t>&&>(here), world.near().rank(), world.near().blocks(),
                           world.near().layout(), provision(world.far(), world.size()));
  }

  // The token says where this rank's block of shared memory is, and, of the first member, the new group's
  // number. How many members are here is not known yet: there is room for all that could be.
  struct reservation {
    std::uint64_t token = 0;
    provision has{};
  };
  [[nodiscard]] static reservation reserve(engine_type& parent, rank_t, rank_t count) {
    world_type& world = parent.endpoint().space();
    // The block comes last: nothing that fails may come after it.
    std::uint64_t const number = world.far().new_id() & counted_mask;
    if (number >= number_mask)
      throw error(status::not_supported, "split: too many communicators in one run; at most 16 million");
    provision has(world.far(), count);
    std::size_t const bytes = layout_for(world, world.near().size()).block_bytes();
    std::uint64_t const block = world.near().address_of(world.near().allocate_block(bytes), 1);
    return {block / page_bytes << number_bits | number, static_cast<provision&&>(has)};
  }
  // See mapped/membership.hpp.
  static void release(engine_type& parent, std::uint64_t token, rank_t) noexcept {
    world_type& world = parent.endpoint().space();
    std::byte* const block = world.near().at((token >> number_bits) * page_bytes);
    world.near().deallocate(block, layout_for(world, world.near().size()).block_bytes());
  }
  [[nodiscard]] static engine_type* assemble(engine_type& parent, array<rank_t> members, rank_t my_rank,
                                             array<std::uint64_t> const& tokens, reservation&& mine) {
    world_type& world = parent.endpoint().space();
    array<rank_t> here = those_here(world, members);
    array<std::byte*> blocks(here.size());
    rank_t count = 0, near_rank = 0;
    for (std::size_t r = 0; r < members.size(); ++r) {
      if (world.near_rank(members[r]) == no_rank) continue;
      if (static_cast<rank_t>(r) == my_rank) near_rank = count;
      blocks[static_cast<std::size_t>(count++)] = world.near().at((tokens[r] >> number_bits) * page_bytes);
    }
    mapped::block_layout layout = layout_for(world, count);
    layout.taken_for = world.near().size();
    std::uint64_t const id = static_cast<std::uint64_t>(members[0]) << 32 | (tokens[0] & number_mask);
    exec::wakefulness const how = wakefulness_of(world, here.size() == members.size());
    return new engine_type(parent.timeout_us(), how, world, id,
                           static_cast<array<rank_t>&&>(members), my_rank, static_cast<array<rank_t>&&>(here),
                           near_rank, blocks.data(), layout, static_cast<provision&&>(mine.has));
  }

 private:
  static constexpr std::uint64_t world_id = 1;
  static constexpr std::uint64_t page_bytes = 4096;  // where blocks begin: 52 bits of their places
  static constexpr int number_bits = 24;
  static constexpr std::uint64_t number_mask = (std::uint64_t{1} << number_bits) - 1;
  static constexpr std::uint64_t counted_mask = 0xffff'ffff;  // what new_id() counts with, below the rank

  // Who has peers elsewhere asks the system for their messages each time that he looks.
  [[nodiscard]] static exec::wakefulness wakefulness_of(world_type const& world, bool all_here) noexcept {
    settings const& chosen = world.chosen();
    return exec::wakefulness_of(chosen.sharing, chosen.yield_us,
                                all_here ? exec::looks_at_memory : exec::looks_by_system_call);
  }

  [[nodiscard]] static mapped::block_layout layout_for(world_type& world, rank_t count) {
    return {count, world.near().layout().staging_bytes};
  }

  [[nodiscard]] static array<rank_t> those_here(world_type& world, array<rank_t> const& members) {
    std::size_t count = 0;
    for (rank_t const r : members) count += world.near_rank(r) != no_rank;
    array<rank_t> here(count);
    count = 0;
    for (rank_t const r : members)
      if (world.near_rank(r) != no_rank) here[count++] = world.near_rank(r);
    return here;
  }
};

}  // namespace collx::inline abi_1::transport::combined
