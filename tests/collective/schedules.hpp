// SPDX-License-Identifier: Apache-2.0
// Every schedule behind pointers, for tests that do the same with all of them: what they do is compiled once,
// and for each schedule the call alone.
#pragma once

#include <string>
#include <vector>

#include "collective/cases.hpp"
#include "collective/forms.hpp"
#include "collx/algo/all.hpp"

namespace schedules {

using collx::rank_t;

// `Form`: how it is called (forms.hpp).
template <template <class> class Form, class Transport>
struct entry {
  using communicator = collx::communicator<Transport>;
  using result = typename Form<void>::template result<Transport>;

  char const* algorithm;
  oracle::collective const* collective;
  bool in_order;  // it combines in the order of ranks
  bool (*supports)(collx::shape);
  std::int32_t (*depth)(collx::shape);
  result (*perform)(communicator&, oracle::setting const&, std::span<oracle::element const> in,
                    std::span<oracle::element> out);

  // With the hardest operator that the schedule promises to combine correctly.
  [[nodiscard]] oracle::participant participant(oracle::setting const& how, rank_t rank,
                                                oracle::element* memory) const {
    return {*collective, in_order, how, rank, memory};
  }
  result operator()(communicator& comm, oracle::setting const& how, oracle::participant const& with) const {
    return perform(comm, how, with.in(), with.out());
  }
  // With the begin of buffers that are large enough for everything.
  result with_room(communicator& comm, rank_t root, std::size_t count, std::span<oracle::element const> in,
                   std::span<oracle::element> out) const {
    collx::problem const p{comm.rank(), comm.size(), root};
    auto const length = [&](collx::block_window const& window) {
      return static_cast<std::size_t>(collective->sharded ? window.count : 1) * count;
    };
    return perform(comm, {comm.size(), count, false, root}, in.first(length(collective->input(p))),
                   out.first(length(collective->output(p))));
  }
  // All that tells this call from others of the tests.
  [[nodiscard]] std::string describe(oracle::setting const& how) const {
    char const* const operation = !collective->from_all ? ""
                                  : in_order            ? ", functions applied in the order of ranks"
                                                        : ", sums";
    return cases::describe(collective->name, algorithm, how) + ", pairs of uint32" + operation + ", over " +
           Transport::name;
  }
};

template <template <class> class Form, class Transport, class Algorithm, class Contract, class Schedule>
auto perform(collx::communicator<Transport>& comm, oracle::setting const& how,
             std::span<oracle::element const> in, std::span<oracle::element> out) {
  return forms::apply<Form<Algorithm>, Contract>(comm, how.root, how.in_place, in, out,
                                                 oracle::operator_for<Schedule>());
}

template <template <class> class Form, class Transport, class Algorithm, class Contract, class Schedule>
inline constexpr entry<Form, Transport> entry_of{Algorithm::name,
                                                 &oracle::collective_of<Contract>,
                                                 collx::keeps_rank_order<Schedule>(),
                                                 &collx::supports<Schedule>,
                                                 &collx::depth<Schedule>,
                                                 &perform<Form, Transport, Algorithm, Contract, Schedule>};

// Those of collx::for_each_schedule.
template <template <class> class Form, class Transport, class Algorithms = collx::algo::all>
std::vector<entry<Form, Transport>> const& all() {
  static auto const found = [] {
    std::vector<entry<Form, Transport>> list;
    collx::for_each_schedule<Algorithms, collx::contract::all>(
        [&]<class Algorithm, class Contract, class Schedule>() {
          list.push_back(entry_of<Form, Transport, Algorithm, Contract, Schedule>);
        });
    return list;
  }();
  return found;
}

// Those of collx::for_each_serving, with the barrier.
template <template <class> class Form, class Transport, class Algorithms = collx::algo::all>
std::vector<entry<Form, Transport>> const& barriers() {
  static auto const found = [] {
    std::vector<entry<Form, Transport>> list;
    collx::for_each_serving<Algorithms, collx::contract::barrier>(
        [&]<class Algorithm, class Contract, class Schedule>() {
          list.push_back(entry_of<Form, Transport, Algorithm, Contract, Schedule>);
        });
    return list;
  }();
  return found;
}

}  // namespace schedules
