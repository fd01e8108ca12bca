// SPDX-License-Identifier: Apache-2.0
// From bound arguments to what the lanes of a GPU are told of a call. Without CUDA: the tests run it on
// threads.
#pragma once

#include "collx/collective/invocation.hpp"
#include "collx/exec/lane_cut.hpp"
#include "collx/exec/lane_tables.hpp"

namespace collx::inline abi_1::detail {

inline void tell_lanes(exec::lane_tables::one& told, uneven_buffer const& b, rank_t size) noexcept {
  told.has_offsets = b.has_offsets;
  told.has_counts = b.counts != nullptr;
  if (!told.has_counts) return;
  std::size_t end = 0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(size); ++r) {
    told.counts[r] = b.counts[r];
    told.offsets[r] = b.offsets != nullptr ? b.offsets[r] : end;
    end += b.counts[r];
  }
}

template <class Contract>
using lane_tables_for = std::conditional_t<is_uneven<Contract>, exec::lane_tables, exec::no_tables>;

// At most lane_peers_max ranks.
template <class Contract, class T, class Op>
[[nodiscard]] lane_tables_for<Contract> lane_tables_of(
    [[maybe_unused]] invocation<Contract, T, Op> const& args, [[maybe_unused]] rank_t size) noexcept {
  lane_tables_for<Contract> told{};
  if constexpr (is_uneven<Contract>) {
    tell_lanes(told.sides[exec::lane_tables::input], args.tables.input, size);
    tell_lanes(told.sides[exec::lane_tables::output], args.tables.output, size);
  }
  return told;
}

// Where schedule S finds its chunks; `told` must stay where it is, or be attached to the map again elsewhere.
template <schedule S, class Contract, class T, class Op>
[[nodiscard]] exec::chunk_map map_call(problem p, invocation<Contract, T, Op> const& args,
                                       [[maybe_unused]] lane_tables_for<Contract> const& told,
                                       std::size_t staging_bytes, int lanes) noexcept {
  auto const user = [&] {
    exec::buffers made = exec::even_buffers<Contract>(p, args.input, args.output, args.in_place);
    if constexpr (is_uneven<Contract>) {
      made.input_table = told.sides[exec::lane_tables::input].table();
      made.output_table = told.sides[exec::lane_tables::output].table();
      made.skips_empty = Contract::counts == known_counts::pairwise;
    }
    return made;
  };
  return exec::map_lanes<S>(p, user, args.count, sizeof(T), staging_bytes, lanes);
}

// Of a buffer that has counts.
[[nodiscard]] inline std::size_t uneven_extent(problem p, uneven_buffer const& b) noexcept {
  if (!b.has_offsets) return b.counts[p.rank];
  std::size_t behind = 0, end = 0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(p.size); ++r) {
    end = (b.offsets != nullptr ? b.offsets[r] : end) + b.counts[r];
    if (b.counts[r] != 0 && end > behind) behind = end;
  }
  return behind;
}

// Elements from where a buffer begins to behind its last block. Without counts it is the one block that a
// rank which is no root knows of.
template <class Contract, class T, class Op>
[[nodiscard]] std::size_t input_extent(problem p, invocation<Contract, T, Op> const& args) noexcept {
  if constexpr (is_uneven<Contract>)
    if (Contract::input(p).count != 0 && args.tables.input.counts != nullptr)
      return uneven_extent(p, args.tables.input);
  return static_cast<std::size_t>(Contract::input(p).count) * args.count;
}

template <class Contract, class T, class Op>
[[nodiscard]] std::size_t output_extent(problem p, invocation<Contract, T, Op> const& args) noexcept {
  if constexpr (is_uneven<Contract>)
    if (Contract::output(p).count != 0 && args.tables.output.counts != nullptr)
      return uneven_extent(p, args.tables.output);
  return static_cast<std::size_t>(Contract::output(p).count) * args.count;
}

}  // namespace collx::inline abi_1::detail
