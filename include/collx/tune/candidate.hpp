// SPDX-License-Identifier: Apache-2.0
// The algorithms of a list that offer a collective, as a table of a few questions each: what chooses
// among them at run time is then one function, and no template.
#pragma once

#include "collx/schedule/type_list.hpp"
#include "collx/tune/two_levels.hpp"

namespace collx::inline abi_1::tune {

struct candidate {
  word name;
  bool keeps_order = false;
  bool (*supports)(shape) = nullptr;
  std::int32_t (*depth)(shape) = nullptr;
  level_factors (*count)(shape) = nullptr;
};

// Whether the algorithm has a schedule for the collective; of one whose blocks have counts of their own,
// one that works on such blocks.
template <class Algorithm, class Contract>
[[nodiscard]] constexpr bool offers() {
  if constexpr (!algorithm_for<Algorithm, Contract>) return false;
  else if constexpr (requires { Contract::counts; })
    return counts_for<schedule_for<Contract, Algorithm>>() >= Contract::counts;
  else return true;
}

namespace detail {

template <class Contract, class Done, class... Rest>
struct offering;
template <class Contract, class... Done>
struct offering<Contract, type_list<Done...>> {
  using type = type_list<Done...>;
};
template <class Contract, class... Done, class First, class... Rest>
struct offering<Contract, type_list<Done...>, First, Rest...>
    : std::conditional_t<offers<First, Contract>(), offering<Contract, type_list<Done..., First>, Rest...>,
                         offering<Contract, type_list<Done...>, Rest...>> {};

template <class Contract, class List>
struct offered_by;
template <class Contract, class... Algorithms>
struct offered_by<Contract, type_list<Algorithms...>> : offering<Contract, type_list<>, Algorithms...> {};

template <class S>
bool ask_supports(shape n) {
  return collx::supports<S>(n);
}
template <class S>
std::int32_t ask_depth(shape n) {
  return collx::depth<S>(n);
}
template <class S>
level_factors ask_factors(shape n) {
  return level_factors_of<S>(n);
}

template <class Contract, class Algorithm>
[[nodiscard]] constexpr candidate describe() {
  using S = schedule_for<Contract, Algorithm>;
  return {word(Algorithm::name), keeps_rank_order<S>(), &ask_supports<S>, &ask_depth<S>, &ask_factors<S>};
}

template <class Contract, class List>
struct candidate_table;
template <class Contract, class... Algorithms>
struct candidate_table<Contract, type_list<Algorithms...>> {
  static constexpr int count = sizeof...(Algorithms);
  static constexpr candidate rows[sizeof...(Algorithms) == 0 ? 1 : sizeof...(Algorithms)] = {
      describe<Contract, Algorithms>()...};
};

}  // namespace detail

// The algorithms of `List` that offer the collective, in the list's order.
template <class Contract, class List>
using offered = typename detail::offered_by<Contract, List>::type;

// The same as data.
template <class Contract, class List>
using candidates = detail::candidate_table<Contract, offered<Contract, List>>;

// Calls f.template operator()<Algorithm>() with number `index` of a list; otherwise() if there is none.
template <class F, class Otherwise>
[[nodiscard]] auto with_number(type_list<>, int, F const&, Otherwise const& otherwise) {
  return otherwise();
}
template <class First, class... Rest, class F, class Otherwise>
[[nodiscard]] auto with_number(type_list<First, Rest...>, int index, F const& f, Otherwise const& otherwise) {
  if (index == 0) return f.template operator()<First>();
  return with_number(type_list<Rest...>{}, index - 1, f, otherwise);
}

}  // namespace collx::inline abi_1::tune
