// SPDX-License-Identifier: Apache-2.0
// From an any_call to the bound arguments of a _v collective. Its counts and offsets are of elements, and
// stay the caller's; so it is bound, and checked, in elements of the type's size, and then turned into bytes.
#pragma once

#include "collx/any/reductions.hpp"
#include "collx/collective/all_gather_v.hpp"
#include "collx/collective/all_to_all_v.hpp"
#include "collx/collective/gather_v.hpp"
#include "collx/collective/reduce_scatter_v.hpp"
#include "collx/collective/scatter_v.hpp"

namespace collx::inline abi_1::detail {

// f.template operator()<T>() with an unsigned integer of the type's size.
template <class F>
[[nodiscard]] auto with_size_of(data_type type, F const& f) noexcept {
  std::size_t const bytes = bytes_of(type);
  return bytes == 8   ? f.template operator()<std::uint64_t>()
         : bytes == 4 ? f.template operator()<std::uint32_t>()
         : bytes == 2 ? f.template operator()<std::uint16_t>()
                      : f.template operator()<std::uint8_t>();
}

template <class T>
[[nodiscard]] std::span<T> elements_at(void const* data, std::size_t count) noexcept {
  return {static_cast<T*>(const_cast<void*>(data)), count};
}

// How large the buffer is, nobody says: as large as its blocks need it. Where that is more than memory can
// hold, it is as large as memory, and the check of the blocks refuses the one that ends behind it.
template <class T>
[[nodiscard]] blocks<T> blocks_at(void const* data, block_list const& list) noexcept {
  constexpr std::size_t most = PTRDIFF_MAX / sizeof(T);
  std::size_t end = 0, extent = 0;
  for (std::size_t r = 0; r < list.counts.size(); ++r) {
    std::size_t const begin = list.offsets.empty() ? end : r < list.offsets.size() ? list.offsets[r] : 0;
    bool const fits = begin <= most && list.counts[r] <= most - begin;
    end = fits ? begin + list.counts[r] : most;
    extent = end > extent ? end : extent;
    if (!fits) break;
  }
  return {elements_at<T>(data, extent), list.counts, list.offsets};
}

// Counts and offsets of blocks are of elements still, whose size `op` has.
template <class Contract, class T, class Op>
[[nodiscard]] invocation<Contract, std::byte, Op> in_bytes_of(invocation<Contract, T, unreduced> const& bound,
                                                              Op const& op) noexcept {
  invocation<Contract, std::byte, Op> args{reinterpret_cast<std::byte const*>(bound.input),
                                           reinterpret_cast<std::byte*>(bound.output),
                                           bound.count * sizeof(T),
                                           bound.root,
                                           op,
                                           bound.in_place,
                                           bound.tables};
  args.fault = bound.fault;
  args.given = bound.given;
  args.needed = bound.needed;
  return args;
}

template <class T>
[[nodiscard]] auto bind_elements(contract::all_gather_v, problem p, any_call const& c) noexcept {
  auto const in = elements_at<T const>(c.in, c.count);
  return bind_all_gather_v(p, in, blocks_at<T>(c.out, c.out_blocks));
}
template <class T>
[[nodiscard]] auto bind_elements(contract::reduce_scatter_v, problem p, any_call const& c) noexcept {
  auto const out = elements_at<T>(c.out, c.count);
  return bind_reduce_scatter_v(p, blocks_at<T const>(c.in, c.in_blocks), out, unreduced{});
}
template <class T>
[[nodiscard]] auto bind_elements(contract::all_to_all_v, problem p, any_call const& c) noexcept {
  return bind_all_to_all_v(p, blocks_at<T const>(c.in, c.in_blocks), blocks_at<T>(c.out, c.out_blocks));
}
template <class T>
[[nodiscard]] auto bind_elements(contract::gather_v, problem p, any_call const& c) noexcept {
  auto const in = elements_at<T const>(c.in, c.count);
  return bind_gather_v(p, in, blocks_at<T>(c.out, c.out_blocks), c.root);
}
template <class T>
[[nodiscard]] auto bind_elements(contract::scatter_v, problem p, any_call const& c) noexcept {
  auto const out = elements_at<T>(c.out, c.count);
  return bind_scatter_v(p, blocks_at<T const>(c.in, c.in_blocks), out, c.root);
}

// What moves needs no operator; its elements have a type all the same, for what ranks compare.
[[nodiscard]] inline exec::erased_reduction moved(data_type type) noexcept {
  return {.element_bytes = bytes_of(type),
          .element_type = element_kind_in(any_types{}, type),
          .op_type = type_number<unreduced>(),
          .op_name = "none"};
}

template <class Contract>
[[nodiscard]] auto bind_uneven(any_call const& call, exec::erased_reduction const* op, problem p) noexcept {
  return with_size_of(call.type, [&]<class T>() noexcept {
    return in_bytes_of(bind_elements<T>(Contract{}, p, call), Contract::from_all ? *op : moved(call.type));
  });
}

}  // namespace collx::inline abi_1::detail
