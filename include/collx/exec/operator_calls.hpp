// SPDX-License-Identifier: Apache-2.0
// An operator and its element type as two functions, so that steps are performed by code that knows
// neither; and what operators that prepare contributions need beyond them.
#pragma once

#include "collx/device/copy_cached.hpp"
#include "collx/exec/memory_map.hpp"

namespace collx::inline abi_1::exec {

// device::combine for one element type and operator. Null where a contract reduces nothing.
using combine_function = void (*)(std::byte* const* destinations, std::int32_t destination_count,
                                  std::byte const* const* sources, std::int32_t source_count,
                                  std::size_t bytes, void const* op, bool complete, rank_t size,
                                  std::int32_t streamed) noexcept;

// An operator's prepare(), applied to elements where they lie.
using prepare_function = void (*)(std::byte* data, std::size_t bytes, void const* op) noexcept;

// How much of an operand is prepared at a time, beside the user's memory.
inline constexpr std::size_t prepared_bytes = 4096;

// Prepares the k-th part of a region where it lies.
COLLX_NEVER_INLINE inline void prepare_region(memory_map const& memory, region const& r, std::int32_t k,
                                              std::size_t fragment, prepare_function prepare,
                                              void const* op) noexcept {
  run const found = memory.find(r, k, fragment);
  if (found.whole) return prepare(found.data, found.bytes, op);
  for (std::int32_t i = 0; i < r.count; ++i) {
    piece const part = memory.chunk(found, r, i, fragment);
    prepare(part.data, part.bytes, op);
  }
}

// The arguments of one combination, of which source `own` (if there is one) is yet to be prepared.
struct unprepared_sum {
  std::byte** destinations;
  std::int32_t destination_count;
  std::byte const** sources;
  std::int32_t source_count;
  std::int32_t own;
  std::size_t bytes, element_bytes;
  void const* op;
  bool complete;
  rank_t size;
  std::int32_t streamed;
};

// A block at a time, prepared beside the user's memory.
COLLX_NEVER_INLINE inline void combine_prepared(unprepared_sum const& sum, combine_function combine,
                                                prepare_function prepare) noexcept {
  std::size_t const block = prepared_bytes / sum.element_bytes * sum.element_bytes;
  alignas(64) std::byte own[prepared_bytes];
  for (std::size_t at = 0; at < sum.bytes; at += block) {
    std::size_t const n = sum.bytes - at < block ? sum.bytes - at : block;
    std::byte const* const given = sum.own < sum.source_count ? sum.sources[sum.own] : nullptr;
    if (given != nullptr) {
      device::copy_cached(own, given, n);
      prepare(own, n, sum.op);
      sum.sources[sum.own] = own;
    }
    combine(sum.destinations, sum.destination_count, sum.sources, sum.source_count, n, sum.op, sum.complete,
            sum.size, sum.streamed);
    if (given != nullptr) sum.sources[sum.own] = given;
    for (std::int32_t k = 0; k < sum.source_count; ++k) sum.sources[k] += n;
    for (std::int32_t j = 0; j < sum.destination_count; ++j) sum.destinations[j] += n;
  }
  for (std::int32_t k = 0; k < sum.source_count; ++k) sum.sources[k] -= sum.bytes;
}

// What is done with contributions that an operator prepares. As pointers, so that only who has such an
// operator compiles it.
struct preparation {
  prepare_function elements;
  decltype(&prepare_region) region = &prepare_region;
  decltype(&combine_prepared) combine = &combine_prepared;
};

}  // namespace collx::inline abi_1::exec
