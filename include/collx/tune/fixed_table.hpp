// SPDX-License-Identifier: Apache-2.0
// Tables of choices as types: what collx_tune writes as a C++ header. A struct that derives from one is
// an algorithm argument; only the algorithms that its rows name for a collective are compiled for it.
//
//   struct my_machine : tune::fixed_table<
//       tune::fixed_rule<contract::all_reduce, algo::direct_one_shot, {.bytes_max = 4096, .ranks_max = 2}>,
//       tune::fixed_rule<contract::all_reduce, algo::ring>> {
//     static constexpr char const* name = "my_machine";
//   };
//   all_reduce<my_machine>(comm, values);
//
// Where no row holds, or those that do cannot (ranks, order), the built-in table chooses.
#pragma once

#include "collx/tune/choice.hpp"
#include "collx/tune/report.hpp"

namespace collx::inline abi_1::tune {

template <class Contract, class Algorithm, condition When = condition{}>
struct fixed_rule {
  using contract = Contract;
  using algorithm = Algorithm;
  static constexpr condition when = When;
  static_assert(offers<Algorithm, Contract>(),
                "collx: a rule names an algorithm that offers no schedule for its collective; "
                "docs/algorithms.md lists which do");
};

namespace detail {

template <class Rule, bool Commutative>
[[nodiscard]] bool rule_holds(question const& q) noexcept {
  using S = schedule_for<typename Rule::contract, typename Rule::algorithm>;
  if constexpr (!Commutative && !keeps_rank_order<S>()) return false;
  else
    return Rule::when.holds(q) && supports<S>(q.ranks) &&
           static_cast<std::uint64_t>(depth<S>(q.ranks)) <= q.credits;
}

}  // namespace detail

template <class... Rules>
struct fixed_table {
  static constexpr char const* name = "a fixed table";
  static constexpr bool chooses_algorithms = true;

  template <class Contract, class Endpoint, bool Commutative, class F, class Otherwise>
  [[nodiscard]] static auto choose(settings const*, question const& q, F const& f, Otherwise const&) {
    return look<Contract, Endpoint, Commutative>(type_list<Rules...>{}, q, f);
  }

  template <class Contract, class Endpoint, bool Commutative>
  static void refuse(settings const*, question const&) {}

  template <class Contract, class Endpoint, bool Commutative>
  static decision explain(settings const*, question const& q, message& text) {
    decision d{.from = source::built_in_table};
    int row = 0;
    (
        [&] {
          ++row;
          if constexpr (std::is_same_v<typename Rules::contract, listed_contract<Contract>>)
            if (d.row < 0 && detail::rule_holds<Rules, Commutative>(q)) {
              d.from = source::loaded_table;
              d.row = row - 1;
              d.named = word(Rules::algorithm::name);
            }
        }(),
        ...);
    add_question(text, word(Contract::name), q);
    if (d.row >= 0) text.add("%s, by rule %d of the table given in the call", d.named.text, d.row + 1);
    else text.add("no rule of the table given in the call holds, so the built-in table chooses");
    return d;
  }

 private:
  template <class Contract, class Endpoint, bool Commutative, class First, class... Rest, class F>
  [[nodiscard]] static auto look(type_list<First, Rest...>, question const& q, F const& f) {
    if constexpr (std::is_same_v<typename First::contract, listed_contract<Contract>>)
      if (detail::rule_holds<First, Commutative>(q))
        return f.template operator()<typename First::algorithm>();
    return look<Contract, Endpoint, Commutative>(type_list<Rest...>{}, q, f);
  }

  template <class Contract, class Endpoint, bool Commutative, class F>
  [[nodiscard]] static auto look(type_list<>, question const& q, F const& f) {
    return tune::choose<Contract, Endpoint, Commutative>(q.bytes, q.ranks.size, q.with, f);
  }
};

}  // namespace collx::inline abi_1::tune
