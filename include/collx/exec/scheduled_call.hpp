// SPDX-License-Identifier: Apache-2.0
// One call of a schedule, with all that its executor is made of, as values: executors know no types of
// schedules, contracts, elements or operators.
#pragma once

#include "collx/device/host_combine.hpp"
#include "collx/exec/call.hpp"
#include "collx/exec/erased_schedule.hpp"
#include "collx/exec/operator_calls.hpp"
#include "collx/exec/workspace.hpp"

namespace collx::inline abi_1::exec {

// An operator that stands for one that is known at run time only, and brings its loop
// (erased_reduction.hpp).
template <class Op>
concept erased = requires {
  &Op::combine_bytes;
};

// One buffer of a call whose blocks have counts of their own. `has_offsets`: the blocks lie where `offsets`
// says, or, if that is null, one behind the other; otherwise the buffer is one block, this rank's, and
// `counts` has an entry for every rank's.
struct uneven_buffer {
  std::size_t const* counts = nullptr;
  std::size_t const* offsets = nullptr;
  bool has_offsets = false;
};
struct uneven_buffers {
  uneven_buffer input{}, output{};
};

// Trivially copyable: a started call is kept as a copy.
struct scheduled_call {
  erased_schedule const* schedule = nullptr;
  erased_contract const* contract = nullptr;
  combine_function combine = nullptr;
  preparation const* prepare = nullptr;
  void const* op = nullptr;    // there until the call has ended
  std::byte* input = nullptr;  // only written where the call is in place, and then it is the output
  std::byte* output = nullptr;
  std::size_t count = 0;  // elements of a block, of the largest one that this rank knows of
  std::size_t element_bytes = 1;
  std::size_t block_pitch = 0;  // as in buffers
  uneven_buffers tables{};      // without counts: all blocks are alike
  bool skips_empty = false;     // as in buffers
  bool in_place = false;
  exec::call what{};
};

namespace detail {

template <class T, class Op>
void combine_as(std::byte* const* destinations, std::int32_t destination_count,
                std::byte const* const* sources, std::int32_t source_count, std::size_t bytes, void const* op,
                bool complete, rank_t size, std::int32_t streamed) noexcept {
  device::combine(reinterpret_cast<T* const*>(destinations), destination_count,
                  reinterpret_cast<T const* const*>(sources), source_count, bytes / sizeof(T),
                  *static_cast<Op const*>(op), complete, size, streamed);
}

template <class T, class Op>
void prepare_as(std::byte* data, std::size_t bytes, void const* op) noexcept {
  T* const elements = reinterpret_cast<T*>(data);
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i)
    elements[i] = static_cast<T>(static_cast<Op const*>(op)->prepare(elements[i]));
}
template <class T, class Op>
inline constexpr preparation preparation_as{&prepare_as<T, Op>};

template <class Contract, class T, class Op>
[[nodiscard]] constexpr preparation const* prepare_for() {
  if constexpr (Contract::from_all && prepares<Op, T>) {
    static_assert(sizeof(T) <= prepared_bytes,
                  "collx: an operator that prepares contributions takes elements of up to 4096 bytes");
    return &preparation_as<T, Op>;
  } else {
    return nullptr;
  }
}

template <class Contract, class T, class Op>
[[nodiscard]] constexpr combine_function combine_for() {
  if constexpr (Contract::from_all && erased<Op>) return &Op::combine_bytes;
  else if constexpr (Contract::from_all) return &combine_as<T, Op>;
  else return nullptr;
}

// Receivers copy private payloads themselves where every rank receives as much as it sends, once. Where
// data flows one way, two ranks that do half of the work each, one into staging and one out of it, are
// faster than one that does all of it; so they are for an all_reduce, and for many operands of a fan-in
// (docs/decisions.md has the figures). Schedules that share the copying out say so themselves.
[[nodiscard]] inline std::size_t fetched_block_bytes_max(erased_contract const& c, rank_t size) noexcept {
  bool const pays = !c.rooted && c.sharded && (!c.from_all || size == 2);
  return pays ? device::fetched_bytes_max() : 0;
}

// What the memory map needs to know of a buffer; packed offsets are worked out into `offsets`, which has room
// for the ranks of the communicator: along an axis of it there are fewer, and fewer counts.
[[nodiscard]] inline block_table table_for(uneven_buffer const& b, rank_t ranks,
                                           array<std::size_t>& offsets) noexcept {
  if (!b.has_offsets || b.offsets != nullptr || b.counts == nullptr) return {b.counts, b.offsets};
  std::size_t begin = 0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
    offsets[r] = begin;
    begin += b.counts[r];
  }
  return {b.counts, offsets.data()};
}

// Whether the last call that was not a small one had the same output. Remembers this one's. Who has none, and
// stores to the root's, takes it to come again where the input does.
[[nodiscard]] inline bool is_output_again(scheduled_call const& call, workspace& work) noexcept {
  if (call.count * call.element_bytes < device::remembered_bytes_min()) return false;
  std::byte const* const known = call.output != nullptr ? call.output : call.input;
  bool const again = known == work.last_output;
  work.last_output = known;
  return again;
}

}  // namespace detail

// The buffers of a call without tables, laid out as the contract has it.
[[nodiscard]] COLLX_NEVER_INLINE inline buffers even_buffers(erased_contract const& c, problem const& p,
                                                             std::byte* input, std::byte* output,
                                                             bool in_place) noexcept {
  buffers user;
  user.input = input;
  user.output = output;
  buffer_windows const held = c.windows(p);
  user.input_window = held.input;
  user.output_window = held.output;
  // The contracts are linear: neighbours are equally far apart.
  if (c.sharded)
    user.output_pitch =
        c.windows({1, p.size, p.root}).output.first - c.windows({0, p.size, p.root}).output.first;
  user.in_place = in_place;
  user.combines = c.from_all;
  user.sharded = c.sharded;
  user.fetched_block_bytes_max = detail::fetched_block_bytes_max(c, p.size);
  return user;
}

template <class Contract, class T>
[[nodiscard]] buffers even_buffers(problem const& p, T const* input, T* output, bool in_place) noexcept {
  return even_buffers(erased_contract_of<Contract>, p, reinterpret_cast<std::byte*>(const_cast<T*>(input)),
                      reinterpret_cast<std::byte*>(output), in_place);
}

// The buffers of a call. `work`: of the lane that it runs on. `output_again`: as in buffers.
[[nodiscard]] COLLX_NEVER_INLINE inline buffers buffers_of(scheduled_call const& call, workspace& work,
                                                           bool output_again) noexcept {
  buffers user = even_buffers(*call.contract, call.what.at.where, call.input, call.output, call.in_place);
  user.output_again = output_again;
  user.numbers_peers = call.what.at.along.is_whole() || user.output_pitch == 0;
  user.block_pitch = call.block_pitch;
  rank_t const ranks = call.what.at.where.size;
  user.input_table = detail::table_for(call.tables.input, ranks, work.input_offsets);
  user.output_table = detail::table_for(call.tables.output, ranks, work.output_offsets);
  user.skips_empty = call.skips_empty;
  return user;
}

// Where a schedule finds its chunks in the user's buffers. `count`: elements of a block, of the largest one
// that this rank knows of where they differ. staging_bytes is the same on every rank.
[[nodiscard]] COLLX_NEVER_INLINE inline memory_map map_memory(erased_schedule const& s, problem const& p,
                                                              buffers user, std::byte* scratch,
                                                              std::size_t count, std::size_t element_bytes,
                                                              std::size_t staging_bytes) noexcept {
  shape const n = p.shape();
  schedule_facts const of = s.facts(n);
  if (of.shares_copying) {
    user.fetched_block_bytes_max = (s.from_all ? 1 : 4) * device::fetched_bytes_max();
    user.lets_post = true;
  }
  user.moves_blocks = of.moves_blocks;
  std::int32_t const parts = of.blocks == 1                ? of.chunk_count
                             : of.chunk_count == of.blocks ? 1
                                                           : of.chunk_count / of.blocks;
  geometry const cut(count, element_bytes, parts, largest_staged(s, n), staging_bytes, !user.skips_empty);
  return {p, cut, of.chunk_count, element_bytes, user, of.scratch_chunks == 0 ? nullptr : scratch};
}

namespace detail {

// Whether what a map depends on, beside buffers, is in the fields of kept_map.
[[nodiscard]] inline bool is_plain(scheduled_call const& call) noexcept {
  return call.tables.input.counts == nullptr && call.tables.output.counts == nullptr &&
         call.block_pitch == 0 && !call.skips_empty && call.what.at.along.is_whole();
}

[[nodiscard]] inline bool is_like(kept_map const& kept, scheduled_call const& call) noexcept {
  return kept.schedule == call.schedule && kept.contract == call.contract && kept.count == call.count &&
         kept.element_bytes == call.element_bytes && kept.in_place == call.in_place &&
         kept.where == call.what.at.where;
}

[[nodiscard]] COLLX_NEVER_INLINE inline memory_map make_map(scheduled_call const& call, workspace& work,
                                                            bool output_again, std::byte* scratch,
                                                            std::size_t staging_bytes) noexcept {
  return map_memory(*call.schedule, call.what.at.where, buffers_of(call, work, output_again), scratch,
                    call.count, call.element_bytes, staging_bytes);
}

COLLX_NEVER_INLINE inline void keep_map(kept_map& kept, scheduled_call const& call, workspace& work,
                                        std::byte* scratch, std::size_t staging_bytes) noexcept {
  kept.schedule = call.schedule;
  kept.contract = call.contract;
  kept.count = call.count;
  kept.element_bytes = call.element_bytes;
  kept.where = call.what.at.where;
  kept.in_place = call.in_place;
  kept.map = make_map(call, work, false, scratch, staging_bytes);
}

}  // namespace detail

// The same of a call. What does not depend on its buffers is worked out once for calls that are alike.
[[nodiscard]] COLLX_NEVER_INLINE inline memory_map map_memory(scheduled_call const& call, workspace& work,
                                                              std::byte* scratch,
                                                              std::size_t staging_bytes) noexcept {
  bool const again = detail::is_output_again(call, work);
  if (COLLX_UNLIKELY(!detail::is_plain(call)))
    return detail::make_map(call, work, again, scratch, staging_bytes);
  kept_map& kept = work.maps[kept_map::place_of(call.schedule, call.count)];
  if (COLLX_UNLIKELY(!detail::is_like(kept, call)))
    detail::keep_map(kept, call, work, scratch, staging_bytes);
  return {kept.map, call.input, call.output, again};
}

template <schedule S, class User>
[[nodiscard]] memory_map map_memory(problem const& p, User const& user, std::byte* scratch, std::size_t count,
                                    std::size_t element_bytes, std::size_t staging_bytes) noexcept {
  return map_memory(erased_schedule_of<S>, p, user(), scratch, count, element_bytes, staging_bytes);
}

}  // namespace collx::inline abi_1::exec
