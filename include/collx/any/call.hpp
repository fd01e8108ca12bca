// SPDX-License-Identifier: Apache-2.0
// any_call: one call as a value, and the values that it is made of: element types, operators, collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collx/core/priority.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1 {

// GCC says that scoped enumerators hide what has their name (collx::sum), which they do not.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"

enum class data_type : std::uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float8_e4m3,
  float8_e5m2,
  float16,
  bfloat16,
  float32,
  float64,
};
inline constexpr std::size_t data_type_count = 14;

enum class reduce_op : std::uint8_t {
  sum,
  prod,
  min,
  max,
  avg,
  bit_and,
  bit_or,
  bit_xor,
  logical_and,
  logical_or,
};
inline constexpr std::size_t reduce_op_count = 10;

#pragma GCC diagnostic pop

// In the order of detail::any_contracts (any/schedules.hpp).
enum class collective_kind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  scan,
  exclusive_scan,
  barrier,
  all_gather_v,
  reduce_scatter_v,
  all_to_all_v,
  gather_v,
  scatter_v,
};
inline constexpr std::size_t collective_kind_count = 16;

[[nodiscard]] constexpr std::size_t bytes_of(data_type type) noexcept {
  constexpr std::uint8_t bytes[data_type_count] = {1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 2, 2, 4, 8};
  return static_cast<std::size_t>(type) < data_type_count ? bytes[static_cast<std::size_t>(type)] : 0;
}
[[nodiscard]] constexpr char const* name(data_type type) noexcept {
  constexpr char const* names[data_type_count] = {
      "int8",   "uint8",       "int16",       "uint16",  "int32",    "uint32",  "int64",
      "uint64", "float8_e4m3", "float8_e5m2", "float16", "bfloat16", "float32", "float64"};
  return static_cast<std::size_t>(type) < data_type_count ? names[static_cast<std::size_t>(type)] : "?";
}
[[nodiscard]] constexpr char const* name(reduce_op op) noexcept {
  constexpr char const* names[reduce_op_count] = {
      "sum", "prod", "min", "max", "avg", "bit_and", "bit_or", "bit_xor", "logical_and", "logical_or"};
  return static_cast<std::size_t>(op) < reduce_op_count ? names[static_cast<std::size_t>(op)] : "?";
}

namespace detail {

// What is said of calls and messages. Of a type that is none nobody knows how many bytes it has.
inline constexpr char const* no_enum_value = "the collective, type or operator is no value of its enum";
[[nodiscard]] constexpr bool is_value(data_type type) noexcept {
  return static_cast<std::size_t>(type) < data_type_count;
}

}  // namespace detail

struct call_options {
  char const* algorithm = nullptr;  // by name, docs/algorithms.md; null: the library chooses
  priority how = priority::normal;  // of a started call
};

// The blocks of a buffer that differ: elements of each, and where it begins, in elements; without offsets
// they follow each other. One entry for every rank (on a graph: for every edge), which stay as they are
// until the call, or the request, is done.
struct block_list {
  std::span<std::size_t const> counts{};
  std::span<std::size_t const> offsets{};
};

// One call, as a value.
struct any_call {
  collective_kind what = collective_kind::barrier;
  void const* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;  // elements of a rank's block
  data_type type = data_type::uint8;
  reduce_op op = reduce_op::sum;
  rank_t root = 0;
  call_options options{};
  block_list in_blocks{}, out_blocks{};  // of the _v collectives

  using kind = collective_kind;

  [[nodiscard]] static any_call all_reduce(void const* in, void* out, std::size_t count, data_type type,
                                           reduce_op op = reduce_op::sum, call_options options = {}) {
    return {kind::all_reduce, in, out, count, type, op, 0, options, {}, {}};
  }
  [[nodiscard]] static any_call reduce_scatter(void const* in, void* out, std::size_t count, data_type type,
                                               reduce_op op = reduce_op::sum, call_options options = {}) {
    return {kind::reduce_scatter, in, out, count, type, op, 0, options, {}, {}};
  }
  [[nodiscard]] static any_call reduce(void const* in, void* out, std::size_t count, data_type type,
                                       reduce_op op = reduce_op::sum, rank_t root = 0,
                                       call_options options = {}) {
    return {kind::reduce, in, out, count, type, op, root, options, {}, {}};
  }
  [[nodiscard]] static any_call scan(void const* in, void* out, std::size_t count, data_type type,
                                     reduce_op op = reduce_op::sum, call_options options = {}) {
    return {kind::scan, in, out, count, type, op, 0, options, {}, {}};
  }
  [[nodiscard]] static any_call exclusive_scan(void const* in, void* out, std::size_t count, data_type type,
                                               reduce_op op = reduce_op::sum, call_options options = {}) {
    return {kind::exclusive_scan, in, out, count, type, op, 0, options, {}, {}};
  }
  [[nodiscard]] static any_call all_gather(void const* in, void* out, std::size_t count, data_type type,
                                           call_options options = {}) {
    return {kind::all_gather, in, out, count, type, {}, 0, options, {}, {}};
  }
  [[nodiscard]] static any_call all_to_all(void const* in, void* out, std::size_t count, data_type type,
                                           call_options options = {}) {
    return {kind::all_to_all, in, out, count, type, {}, 0, options, {}, {}};
  }
  [[nodiscard]] static any_call broadcast(void const* in, void* out, std::size_t count, data_type type,
                                          rank_t root = 0, call_options options = {}) {
    return {kind::broadcast, in, out, count, type, {}, root, options, {}, {}};
  }
  [[nodiscard]] static any_call gather(void const* in, void* out, std::size_t count, data_type type,
                                       rank_t root = 0, call_options options = {}) {
    return {kind::gather, in, out, count, type, {}, root, options, {}, {}};
  }
  [[nodiscard]] static any_call scatter(void const* in, void* out, std::size_t count, data_type type,
                                        rank_t root = 0, call_options options = {}) {
    return {kind::scatter, in, out, count, type, {}, root, options, {}, {}};
  }
  [[nodiscard]] static any_call barrier(call_options options = {}) {
    return {kind::barrier, nullptr, nullptr, 0, data_type::uint8, {}, 0, options, {}, {}};
  }

  // Whose blocks differ. `count`: of this rank's own block, on the side that has only that one; the lists as
  // in the collectives of the same name. Of gather_v and scatter_v, the root's alone is read.
  [[nodiscard]] static any_call all_gather_v(void const* in, void* out, std::size_t count,
                                             block_list const& out_blocks, data_type type,
                                             call_options options = {}) {
    return {kind::all_gather_v, in, out, count, type, {}, 0, options, {}, out_blocks};
  }
  [[nodiscard]] static any_call reduce_scatter_v(void const* in, void* out, std::size_t count,
                                                 block_list const& in_blocks, data_type type,
                                                 reduce_op op = reduce_op::sum, call_options options = {}) {
    return {kind::reduce_scatter_v, in, out, count, type, op, 0, options, in_blocks, {}};
  }
  [[nodiscard]] static any_call all_to_all_v(void const* in, void* out, block_list const& in_blocks,
                                             block_list const& out_blocks, data_type type,
                                             call_options options = {}) {
    return {kind::all_to_all_v, in, out, 0, type, {}, 0, options, in_blocks, out_blocks};
  }
  [[nodiscard]] static any_call gather_v(void const* in, void* out, std::size_t count,
                                         block_list const& out_blocks, data_type type, rank_t root = 0,
                                         call_options options = {}) {
    return {kind::gather_v, in, out, count, type, {}, root, options, {}, out_blocks};
  }
  [[nodiscard]] static any_call scatter_v(void const* in, void* out, std::size_t count,
                                          block_list const& in_blocks, data_type type, rank_t root = 0,
                                          call_options options = {}) {
    return {kind::scatter_v, in, out, count, type, {}, root, options, in_blocks, {}};
  }
};

}  // namespace collx::inline abi_1
