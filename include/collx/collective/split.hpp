// SPDX-License-Identifier: Apache-2.0
// communicator::split: smaller groups out of a larger one, as in MPI_Comm_split.
#pragma once

#include <new>

#include "collx/collective/all_gather.hpp"
#include "collx/collective/barrier.hpp"

namespace collx::inline abi_1 {

namespace detail {

// What each rank tells the others: which group it wants. Then what it has reserved for it: `color` is a
// status, and if that is not ok, this rank has nothing for the group, and who waits for it must be told.
struct split_record {
  std::int32_t color, key;
  std::uint64_t token;
};

[[noreturn]] COLLX_COLD inline void throw_not_reserved(status why, rank_t rank, rank_t size, rank_t who) {
  char const* lacks = "no memory left";
  char const* advice = "free buffers or communicators there, or set COLLX_HEAP_BYTES to more on every rank";
  if (why == status::not_supported) {
    lacks = "no number left";
    advice = "each communicator of a run has its own; make fewer, and keep them";
  } else if (why != status::out_of_memory) {
    lacks = "no descriptor left";
    advice = "end communicators there, or raise its limit on descriptors (ulimit -n)";
  }
  throw_error(why, "split on rank %d of %d: rank %d has %s for its part of the group; %s", rank, size, who,
              lacks, advice);
}

// Ranks of the new group, in the order (key, old rank). Returns how many there are.
[[nodiscard]] inline rank_t members_of(array<split_record> const& all, std::int32_t color,
                                       array<rank_t>& members) {
  rank_t count = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].color != color) continue;
    // Insertion keeps old ranks in order among equal keys.
    rank_t at = count++;
    for (;
         at > 0 && all[static_cast<std::size_t>(members[static_cast<std::size_t>(at - 1)])].key > all[r].key;
         --at)
      members[static_cast<std::size_t>(at)] = members[static_cast<std::size_t>(at - 1)];
    members[static_cast<std::size_t>(at)] = static_cast<rank_t>(r);
  }
  return count;
}

// What a rank keeps in mind while it splits. Allocated before anything is sent: who has no memory for it may
// split again, and the others have only waited.
struct split_tables {
  array<split_record> all;
  array<rank_t> old_ranks;  // of the members of the new group

  [[nodiscard]] static split_tables of(problem const& where) {
    auto const count = static_cast<std::size_t>(where.size);
    try {
      return {array<split_record>(count), array<rank_t>(count)};
    } catch (std::bad_alloc const&) {
      throw_error(
          status::out_of_memory,
          "split on rank %d of %d: no memory is left here for a list of the ranks, and the others wait; "
          "free some and split again, or abort()",
          where.rank, where.size);
    }
  }
};

[[noreturn]] COLLX_COLD inline void throw_not_assembled(problem const& where) {
  throw_error(
      status::out_of_memory,
      "split on rank %d of %d: no memory is left here for the group, which the other members have made "
      "by now; abort(), so that they do not wait for this rank",
      where.rank, where.size);
}

}  // namespace detail

template <class Transport>
communicator<Transport> communicator<Transport>::split(std::int32_t color, std::int32_t key) {
  // First who is with whom, since what is reserved depends on it; then where it was reserved.
  detail::split_tables tables = detail::split_tables::of(where_);
  auto& [all, old_ranks] = tables;
  detail::split_record mine{color, key, 0};
  all_gather(*this, std::span(&mine, 1), all);
  rank_t const count = detail::members_of(all, color, old_ranks);
  rank_t my_rank = 0;
  while (old_ranks[static_cast<std::size_t>(my_rank)] != rank()) ++my_rank;
  array<rank_t> members;
  array<std::uint64_t> tokens;
  typename Transport::membership::reservation reserved;
  status outcome = status::ok;
  try {
    // What is reserved comes last: nothing that fails may come after it.
    members = array<rank_t>(static_cast<std::size_t>(count));
    tokens = array<std::uint64_t>(static_cast<std::size_t>(count));
    reserved = Transport::membership::reserve(*engine_, my_rank, count);
  } catch (error const& failure) {
    outcome = failure.code();
  } catch (std::bad_alloc const&) {
    outcome = status::out_of_memory;
  }
  mine = {static_cast<std::int32_t>(outcome), key, reserved.token};
  all_gather(*this, std::span(&mine, 1), all);
  for (rank_t r = 0; r < count; ++r) {
    rank_t const old_rank = old_ranks[static_cast<std::size_t>(r)];
    auto const its = static_cast<status>(all[static_cast<std::size_t>(old_rank)].color);
    if (its == status::ok) continue;
    if constexpr (requires { Transport::membership::release(*engine_, mine.token, count); })
      if (outcome == status::ok) Transport::membership::release(*engine_, mine.token, count);
    detail::throw_not_reserved(its, rank(), size(), old_rank);
  }

  for (rank_t r = 0; r < count; ++r) {
    rank_t const old_rank = old_ranks[static_cast<std::size_t>(r)];
    members[static_cast<std::size_t>(r)] = world_rank(old_rank);
    tokens[static_cast<std::size_t>(r)] = all[static_cast<std::size_t>(old_rank)].token;
  }
  engine_type* engine = nullptr;
  try {
    engine = Transport::membership::assemble(*engine_, static_cast<array<rank_t>&&>(members), my_rank, tokens,
                                             static_cast<decltype(reserved)&&>(reserved));
  } catch (std::bad_alloc const&) {
    detail::throw_not_assembled(where_);
  }
  engine->checker(engine_->checker());
  engine->said() = engine_->said();
  world_->keep();
  communicator made(world_, engine);
  // What comes for a group that a rank has no part in yet would hold up all behind it, on the connections to
  // the peers that are done; and what another thread waits for may be behind it.
  if constexpr (requires { Transport::endpoint::holds_up_early; })
    if (size() > 2) collx::barrier(*this);
  return made;
}

}  // namespace collx::inline abi_1
