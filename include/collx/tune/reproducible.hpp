// SPDX-License-Identifier: Apache-2.0
// The choice of algorithm where the caller requires a level of reproducibility.
#pragma once

#include "collx/core/reproducibility.hpp"
#include "collx/tune/choice.hpp"

namespace collx::inline abi_1::tune {

namespace detail {
template <class... Rows>
[[nodiscard]] consteval bool all_fold_from_left(table<Rows...>) {
  return ((std::is_same_v<typename Rows::algorithm, algo::direct_one_shot> ||
           std::is_same_v<typename Rows::algorithm, algo::direct_two_shot>) &&
          ...);
}
}  // namespace detail

// From any_transport on what is chosen may not depend on the transport, and all rows must have the same
// brackets: the direct algorithms, which fold from the left, both have.
template <class Contract>
struct reproducible_table { using type = table<row<algo::direct_one_shot>>; };
template <>
struct reproducible_table<contract::all_reduce> {
  using type = mapped_table<contract::all_reduce>::type;
  static_assert(detail::all_fold_from_left(type{}),
                "collx: the row of an algorithm with other brackets needs a table of its own here");
};

namespace detail {

// The rows of a table whose schedules have a level, in their order.
template <class Contract, reproducibility Level, class Kept, class... Rows>
struct rows_with;
template <class Contract, reproducibility Level, class... Kept>
struct rows_with<Contract, Level, table<Kept...>> { using type = table<Kept...>; };
template <class Contract, reproducibility Level, class... Kept, class First, class... Rest>
struct rows_with<Contract, Level, table<Kept...>, First, Rest...> {
  static constexpr bool has_it = level_of<schedule_for<Contract, typename First::algorithm>>() >= Level;
  using kept = std::conditional_t<has_it, table<Kept..., First>, table<Kept...>>;
  using type = typename rows_with<Contract, Level, kept, Rest...>::type;
};

template <class Contract, reproducibility Level, class... Rows>
[[nodiscard]] consteval auto keep_rows(table<Rows...>) {
  return typename rows_with<Contract, Level, table<>, Rows...>::type{};
}

}  // namespace detail

// As choose(), among algorithms of a level. `Exact`: the operator is exact on the element type, so that
// every algorithm has every level.
template <class Contract, class Endpoint, bool Commutative, reproducibility Level, bool Exact, class F>
[[nodiscard]] auto choose_reproducible(std::size_t bytes, rank_t size, situation with, F const& f) {
  if constexpr (Exact || !Contract::from_all) {
    return choose<Contract, Endpoint, Commutative>(bytes, size, with, f);
  } else if constexpr (Level >= reproducibility::any_size) {
    static_assert(Exact,
                  "collx: no algorithm that combines one vector per rank gives the same bits for every "
                  "number of ranks with this operator; use all_reduce_fixed_tree, or integers");
  } else {
    constexpr bool anywhere = Level >= reproducibility::any_transport;
    using rows = std::conditional_t<anywhere, reproducible_table<Contract>, table_of<Contract, Endpoint>>;
    using kept = decltype(detail::keep_rows<Contract, Level>(typename rows::type{}));
    static_assert(!std::is_same_v<kept, table<>>,
                  "collx: no algorithm of the library's table has this level for this collective");
    // Of the same job, the next run may have other processors.
    situation const same{.symmetric = !anywhere && with.symmetric};
    return choose_from<Contract, Commutative>(kept{}, bytes, size, same, f);
  }
}

}  // namespace collx::inline abi_1::tune
