// SPDX-License-Identifier: Apache-2.0
// What make_any knows of element types and operators: the loop of every pair that was asked for.
#pragma once

#include "collx/any/call.hpp"
#include "collx/collective/call.hpp"
#include "collx/exec/erased_reduction.hpp"
#include "collx/op/small_float.hpp"
#include "collx/schedule/type_list.hpp"

namespace collx::inline abi_1 {

using any_types =
    type_list<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
              std::int64_t, std::uint64_t, float8_e4m3, float8_e5m2, float16, bfloat16, float, double>;
using any_ops = type_list<sum_t, prod_t, min_t, max_t, avg_t, bit_and_t, bit_or_t, bit_xor_t, logical_and_t,
                          logical_or_t>;

namespace detail {

template <class T, class... Ts>
[[nodiscard]] consteval std::size_t place_in(type_list<Ts...>) {
  static_assert((std::is_same_v<T, Ts> || ...),
                "collx: any_communicator knows the types of data_type and the "
                "operators of reduce_op only");
  std::size_t at = 0;
  (void)((std::is_same_v<T, Ts> || (++at, false)) || ...);
  return at;
}

template <class... Ts>
[[nodiscard]] constexpr exec::element_kind const* element_kind_in(type_list<Ts...>, data_type type) noexcept {
  exec::element_kind const* const kinds[] = {&element_kind_of<Ts>...};
  auto const place = static_cast<std::size_t>(type);
  return place < sizeof...(Ts) ? kinds[place] : &exec::no_elements;
}

template <class Op>
inline constexpr Op the_operator{};

struct reduction_table {
  exec::erased_reduction of[data_type_count][reduce_op_count];
};

template <class Types, class Ops>
struct reductions;

template <class... Ts, class Ops>
struct reductions<type_list<Ts...>, Ops> {
  template <class T, class Op>
  static constexpr void enter(reduction_table& table) {
    if constexpr (reduction<Op, T>)
      table.of[place_in<T>(any_types{})][place_in<Op>(any_ops{})] = {&exec::detail::combine_as<T, Op>,
                                                                     &the_operator<Op>,
                                                                     sizeof(T),
                                                                     &element_kind_of<T>,
                                                                     type_number<Op>(),
                                                                     Op::name};
  }
  template <class T, class... All>
  static constexpr void enter_all(reduction_table& table, type_list<All...>) {
    (enter<T, All>(table), ...);
  }
  [[nodiscard]] static constexpr reduction_table make() {
    reduction_table table{};
    (enter_all<Ts>(table, Ops{}), ...);
    return table;
  }
  static constexpr reduction_table known = make();
};

}  // namespace detail
}  // namespace collx::inline abi_1
