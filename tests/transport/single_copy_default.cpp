// SPDX-License-Identifier: Apache-2.0
// Whether the system copies payloads at all, where nobody has said so: as quick as it is here.
// thread sanitizer: no, each rank is a process of one thread
#include <algorithm>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "collx/bootstrap/local.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/gather.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/scatter.hpp"
#include "transport/fetching.hpp"
#include "watched.hpp"

namespace {

// How many of two ranks fetch a block that is worth it.
int ranks_that_fetch(collx::transport::settings const& chosen) {
  constexpr int staged = 10, fetched = 11;
  auto const codes = watched::on_processes<fetching>(
      2,
      [](collx::communicator<fetching>& comm) {
        collx::barrier(comm);  // each has found out as it joined
        std::vector<int> const in(100'000, comm.rank());
        std::vector<int> out(200'000);
        collx::all_gather(comm, in, out);
        if (out.front() != 0 || out.back() != 1) throw std::runtime_error("wrong result");
        return comm.engine().endpoint().fetched == 0 ? staged : fetched;
      },
      chosen);
  for (int const code : codes) CHECK((code == staged || code == fetched));
  return static_cast<int>(std::count(codes.begin(), codes.end(), fetched));
}

// What a page more costs two ranks that find it out at the same time, as they do when they join: the more of
// the two, which may be twice what one finds that is alone on its machine.
double cost_for_two() {
  constexpr double steps = 10;
  constexpr int least = 10;  // below, and from 128 on, codes say that a rank has failed
  auto const codes = watched::on_processes<fetching>(2, [](collx::communicator<fetching>& comm) {
    collx::barrier(comm);
    double const cost = collx::transport::shared_memory::time_page_copy().cost;
    return least + static_cast<int>(std::min(cost * steps, 99.0));
  });
  for (int const code : codes) CHECK((code >= least && code < 128));
  return (std::max(codes[0], codes[1]) - least + 1) / steps;
}

// Makes 300 calls with blocks of 12 KB, where the system is said to take so long for a page; whether this
// rank has fetched in any of them. Not in which: staging is tried again after a while.
template <class Call>
bool fetches(collx::communicator<fetching>& comm, double system_page_ns, Call const& call) {
  auto& endpoint = comm.engine().endpoint();
  endpoint.paces() = {};
  endpoint.paces().start({system_page_ns}, 128 * 1024);
  endpoint.fetched = 0;
  for (int i = 0; i < 300; ++i) call();
  return endpoint.fetched != 0;
}

}  // namespace

TEST_CASE("single copy: where staging is found to be slow, smaller payloads are lent, to roots as well") {
  system_copies::say_if_refused();
  constexpr std::size_t count = 3000;
  auto const codes = watched::on_processes<fetching>(2, [](collx::communicator<fetching>& comm) {
    collx::barrier(comm);
    if (!permitted(comm) || comm.engine().endpoint().space().crowded()) return 0;
    std::vector<int> const in(2 * count, comm.rank() + 1);
    std::vector<int> out(2 * count);
    std::span const one = std::span(in).first(count);
    auto const reduce = [&] { collx::reduce(comm, one, std::span(out).first(count), collx::sum, 1); };
    auto const gather = [&] { collx::gather(comm, one, std::span(out), 1); };
    auto const scatter = [&] { collx::scatter(comm, in, std::span(out).first(count), 1); };
    for (double const page_ns : {1e-6, 1e9}) {
      bool const is_slow = page_ns < 1;
      bool const is_root = comm.rank() == 1;
      if (fetches(comm, page_ns, reduce) != (is_slow && is_root)) return 2;
      if (is_root && out.front() != 3) return 3;
      if (fetches(comm, page_ns, gather) != (is_slow && is_root)) return 4;
      if (is_root && (out.front() != 1 || out.back() != 2)) return 5;
      if (fetches(comm, page_ns, scatter) != (is_slow && !is_root)) return 6;
      if (out.front() != 2) return 7;
    }
    return 0;
  });
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("single copy: by default only where the system is quick at it") {
  system_copies::say_if_refused();
  int const where_asked_to = system_copies::permitted ? 2 : 0;
  CHECK(ranks_that_fetch({.single_copy_bytes = 1024}) == where_asked_to);
  CHECK(ranks_that_fetch({.system_copy_cost_max = 1e9}) == where_asked_to);
  CHECK(ranks_that_fetch({.system_copy_cost_max = 0}) == 0);

  double const cost = collx::transport::shared_memory::time_page_copy().cost;
  double const limit = collx::transport::settings{}.system_copy_cost_max;
  MESSAGE("a page more takes the system as long as ", cost, " copies of it");
  CHECK(cost > 0);
  double const before = cost_for_two();
  int const found = ranks_that_fetch({});
  // What others do on the machine changes it: it counts where it was so before and after.
  double const again = cost_for_two();
  CAPTURE(before);
  CAPTURE(again);
  if (std::min({cost, before, again}) > 1.5 * limit) CHECK(found == 0);
  // From 0.85 of the limit on ranks may be in doubt, and begin otherwise.
  if (std::max({cost, before, again}) < 0.85 * limit / 1.5) CHECK(found == where_asked_to);
}

TEST_CASE("single copy: ranks that come out on either side of the limit do as one") {
  system_copies::say_if_refused();
  int const where_asked_to = system_copies::permitted ? 2 : 0;
  // At the limit, and where doubt begins: each rank measures for itself, and a little more or less.
  for (double const of_limit : {1.0, 0.85})
    for (int i = 0; i < 10; ++i) {
      double const cost = collx::transport::shared_memory::time_page_copy().cost;
      int const found = ranks_that_fetch({.system_copy_cost_max = cost / of_limit});
      CHECK((found == 0 || found == where_asked_to));
    }
}
