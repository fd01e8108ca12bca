// SPDX-License-Identifier: Apache-2.0
// `selected`: an algorithm argument that chooses in every call among a list of algorithms, by names and
// tables that are known only when the program runs (decision.hpp). All algorithms of the list are
// compiled for every collective that is called with it: only who asks for it pays.
//
//   all_reduce<collx::selected>(comm, values);
//   all_reduce<collx::tune::selected_from<type_list<algo::ring, my_algorithm>>>(comm, values);
#pragma once

#include "collx/algo/all.hpp"
#include "collx/algo/hierarchical.hpp"
#include "collx/tune/choice.hpp"
#include "collx/tune/report.hpp"
#include "collx/tune/transport_levels.hpp"

namespace collx::inline abi_1 {
namespace tune {

namespace detail {

template <class Contract, bool Commutative, class... Rows>
[[nodiscard]] built_in_row first_row(table<Rows...>, question const& q) noexcept {
  built_in_row found;
  int at = 0;
  auto const look = [&]<class Row>() {
    if (found.row < 0 && may_choose<Contract, Commutative, Row>() &&
        Row::applies(q.bytes, q.ranks.size, q.with))
      found = {at, word(Row::algorithm::name)};
    ++at;
  };
  (look.template operator()<Rows>(), ...);
  return found;
}

// Message transports have no rows that were measured.
template <class Contract, class Endpoint, bool Commutative>
[[nodiscard]] built_in_row built_in(question const& q) noexcept {
  if constexpr (Endpoint::is_mapped)
    return first_row<Contract, Commutative>(typename table_of<Contract, Endpoint>::type{}, q);
  else return {};
}

template <class Table>
class counted_shapes {
 public:
  // The counts of a schedule depend on the ranks alone; to count takes up to milliseconds. A thread that
  // calls on more groups of different shapes than are remembered, by turns, counts again and again.
  [[nodiscard]] static level_factors const* of(shape n) noexcept {
    static thread_local counted_shapes mine;
    for (entry const& known : mine.entries_)
      if (known.ranks == n) return known.rows;
    entry& made = mine.entries_[mine.next_];
    mine.next_ = (mine.next_ + 1) % remembered;
    made.ranks = n;
    for (int i = 0; i < Table::count; ++i)
      made.rows[i] = Table::rows[i].supports(n) ? Table::rows[i].count(n) : level_factors{};
    return made.rows;
  }

 private:
  static constexpr int remembered = 8;
  struct entry {
    shape ranks{0, 0};
    level_factors rows[Table::count == 0 ? 1 : Table::count];
  };
  entry entries_[remembered];
  int next_ = 0;
};

template <class List, class Contract, class Endpoint, bool Commutative>
inline constexpr selection selection_of{candidates<Contract, List>::rows,
                                        candidates<Contract, List>::count,
                                        word(Contract::name),
                                        Commutative,
                                        near_level<Endpoint>(),
                                        far_level<Endpoint>(),
                                        &built_in<Contract, Endpoint, Commutative>,
                                        &counted_shapes<candidates<Contract, List>>::of};

}  // namespace detail

template <class List>
struct selected_from {
  static constexpr char const* name = "selected";
  static constexpr bool chooses_algorithms = true;

  // Calls f.template operator()<Algorithm>() with the one chosen, or otherwise() where there is none.
  template <class Contract, class Endpoint, bool Commutative, class F, class Otherwise>
  [[nodiscard]] static auto choose(settings const* own, question const& q, F const& f,
                                   Otherwise const& otherwise) {
    selection const& s = detail::selection_of<List, Contract, Endpoint, Commutative>;
    decision const d = decide(s, q, own);
    return with_number(offered<Contract, List>{}, d.why == refusal::none ? d.index : -1, f, otherwise);
  }

  // Throws error (bad_argument) that says why choose() found none.
  template <class Contract, class Endpoint, bool Commutative>
  [[noreturn]] static void refuse(settings const* own, question const& q) {
    throw_refusal(detail::selection_of<List, Contract, Endpoint, Commutative>, q, own);
  }

  // Adds the choice and its reason to a text.
  template <class Contract, class Endpoint, bool Commutative>
  static decision explain(settings const* own, question const& q, message& text) {
    selection const& s = detail::selection_of<List, Contract, Endpoint, Commutative>;
    decision const d = decide(s, q, own);
    describe(text, s, q, own, d);
    return d;
  }
};

}  // namespace tune

namespace tune {

// For ranks on several hosts, or in other groups (communicator::ranks_per_group).
using two_level_algorithms = type_list<algo::hierarchical<algo::direct_one_shot, algo::ring>,
                                       algo::hierarchical<algo::direct_one_shot, algo::recursive_doubling>,
                                       algo::hierarchical<algo::direct_one_shot,
                                                          algo::recursive_halving_doubling>,
                                       algo::hierarchical<algo::direct_one_shot, algo::binomial_tree>,
                                       algo::hierarchical<algo::direct_one_shot, algo::direct_one_shot>>;

}  // namespace tune

using selected = tune::selected_from<joined<algo::all, tune::two_level_algorithms>>;

}  // namespace collx::inline abi_1
