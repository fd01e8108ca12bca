// SPDX-License-Identifier: Apache-2.0
// The proof that a schedule is right, for one number of ranks: run it symbolically and look.
// Usable in constant expressions for small sizes (schedule/proves.hpp turns it into a
// static_assert) and at run time for any; never included by the headers of the collectives.
//
// Proved, for separate buffers and in place: every output chunk holds each required contribution
// exactly once (in rank order where promised); every receive is matched and no message is left
// over; nothing is read before it is written, nor overwritten or pushed to while somebody may read
// it; the schedule finishes with depth(size) messages in flight per pair of ranks; the bits of its
// reductions depend on rank and chunk no more than its `reproduces` allows; one that states `moves_blocks`
// does nothing else; its cost is the documented one.
// explain() says what a finding is; docs/schedules.md, of those that need thought, what to look at.
#pragma once

#include "collx/schedule/staged.hpp"
#include "collx/schedule/verify/moved_blocks.hpp"
#include "collx/schedule/verify/run.hpp"

namespace collx::inline abi_1 {

struct verify_options {
  std::int32_t depth = 0;  // 0: what the schedule declares
  bool separate = true;    // prove it with input and output apart
  bool in_place = true;    // prove it with input and output in the same memory
  bool cost = true;        // compare with documented_cost
  // Not 0: prove it for blocks whose counts differ, as a schedule that states `counts` promises; where
  // counts are known pairwise, some blocks, chosen by this seed, are empty. The cost is then not compared.
  std::uint32_t uneven = 0;
};

namespace detail {

template <class Watcher = unwatched>
[[nodiscard]] constexpr verdict verify(subject s, verify_options options, Watcher const& watcher = {}) {
  s.emptied = options.uneven;
  verdict found{.size = s.size, .inner = s.inner, .root = s.root};
  if (!s.supported) found.what = fault::size_not_supported;
  else if (s.chunks <= 0 || s.chunks % s.blocks != 0) found.what = fault::bad_chunk_count;
  else if (std::int64_t{s.size} * s.chunks > (std::int64_t{1} << 30)) found.what = fault::too_large;
  else if (s.emptied != 0 && (s.scratch != 0 || s.chunks != s.blocks)) found.what = fault::uneven_scratch;
  if (!found.ok()) return found;

  std::int32_t const depth = options.depth > 0 ? options.depth : s.depth;
  if (options.separate) found = symbolic_run(s, depth, false, watcher).execute();
  if (found.ok() && options.in_place) found = symbolic_run(s, depth, true, watcher).execute();
  if (found.ok() && s.moves_blocks && !only_moves_blocks(s)) found.what = fault::more_than_blocks;
  if (found.ok() && found.level < s.level) found.what = fault::wrong_level;
  for (rank_t r = 0; found.ok() && s.staged >= 0 && r < s.size; ++r)
    if (staged_chunks(s, s.of(r)) > s.staged) found.what = fault::more_staged, found.rank = r;
  if (!found.ok() || !options.cost || s.emptied != 0) return found;

  auto const differs = [&](std::int64_t counted, std::int64_t documented) {
    return s.cost_is_bound ? counted > documented : counted != documented;
  };
  if (differs(found.counted.rounds, s.documented.rounds)) found.what = fault::wrong_rounds;
  else if (differs(found.counted.messages, s.documented.messages)) found.what = fault::wrong_messages;
  else if (differs(found.counted.chunks, s.documented.chunks)) found.what = fault::wrong_chunks;
  else if (s.documented.rounds > s.of_worst_root.rounds || s.documented.messages > s.of_worst_root.messages ||
           s.documented.chunks > s.of_worst_root.chunks)
    found.what = fault::above_worst_root;
  return found;
}

[[nodiscard]] constexpr std::int32_t minimal_depth(subject const& s) {
  for (std::int32_t depth = 1;; ++depth) {
    verdict const found = verify(s, {.depth = depth, .in_place = false, .cost = false});
    if (found.ok()) return depth;
    // A rank has at most step_count messages in flight to a peer; more slots cannot help.
    if (found.what != fault::deadlock || depth > s.step_count(s.of(found.rank))) return 0;
  }
}

}  // namespace detail

// Proves schedule S for a number of ranks (or a shape), or says what is wrong with it.
template <schedule S>
[[nodiscard]] constexpr verdict verify(shape size, rank_t root = 0, verify_options options = {}) {
  return detail::verify(detail::erased<S>::of(size, root), options);
}

// The same, watched: watcher.step(problem, 0, index, primitive) is called for every step of every rank that
// the proof performs, in its order, first with input and output apart and then in place.
template <schedule S, class Watcher>
[[nodiscard]] constexpr verdict verify(shape size, rank_t root, verify_options options,
                                       Watcher const& watcher) {
  return detail::verify(detail::erased<S>::of(size, root), options, watcher);
}

// The least depth with which S finishes, or 0 if it is wrong with any depth.
template <schedule S>
[[nodiscard]] constexpr std::int32_t minimal_depth(shape size, rank_t root = 0) {
  return detail::minimal_depth(detail::erased<S>::of(size, root));
}

}  // namespace collx::inline abi_1
