// SPDX-License-Identifier: Apache-2.0
// Ranks of several hosts, some of which share one: what they get is what the reference gives, in private
// memory, in memory that peers of a host map, and in parts of them. One algorithm of each kind: schedules are
// proved and run elsewhere; here it is which way each message goes. The hosts are pretended
// (transport/pretended_hosts.hpp); tests/hosts has real ones.
// Asked for, up to 33 ranks.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <cstdlib>

#include <doctest/doctest.h>

#include "asked_for.hpp"
#include "collective/each_rank.hpp"
#include "collective/exchange_order.hpp"
#include "collx/collx.hpp"
#include "sample.hpp"
#include "transport/pretended_hosts.hpp"

using namespace each_rank;
using pretended::shm_and_tcp;

namespace {

using algorithms = collx::type_list<collx::algo::direct_one_shot, collx::algo::direct_two_shot,
                                    collx::algo::knomial_tree<4>, collx::algo::pat, collx::algo::ring>;
using few = collx::type_list<collx::algo::direct_one_shot, collx::algo::ring>;
using hosts = std::vector<std::uint64_t>;

template <template <class> class Form, class Algorithms>
void walk_in(collx::communicator<shm_and_tcp>& comm, bool symmetric, cases::some wanted) {
  if (sample::is_sample) wanted.every *= 4;  // a sanitizer takes five times as long
  std::size_t const count = memory_count(comm.size());
  std::vector<oracle::element> own(symmetric ? 0 : count);
  auto const shared = comm.allocate<oracle::element>(symmetric ? count : 1);
  if (walk<Form, Algorithms>(comm, symmetric ? shared.data() : own.data(), wanted) == 0)
    throw std::runtime_error("walked nothing");
}

// As many ranks on so many hosts, in turn.
hosts dealt_out(rank_t size, rank_t host_count) {
  hosts host_of;
  for (rank_t r = 0; r < size; ++r) host_of.push_back(static_cast<std::uint64_t>(r % host_count) + 1);
  return host_of;
}
// As many on two hosts, one after the other.
hosts filled_up(rank_t size, rank_t on_the_first) {
  hosts host_of(static_cast<std::size_t>(size), 2);
  std::fill_n(host_of.begin(), on_the_first, 1);
  return host_of;
}

// `rank_main(comm, number)` on all ranks of each shape; they end well.
void check_on(std::vector<hosts> const& shapes, auto const& rank_main) {
  (void)oracle::reference::get();
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = cases::staging_bytes;
  for (std::size_t number = 0; number < shapes.size(); ++number) {
    CAPTURE(number);
    // In sockets that hold little, messages wait where they were staged.
    if (number % 2 == 1) setenv("COLLX_TCP_BUFFER_BYTES", "4096", 1);
    else unsetenv("COLLX_TCP_BUFFER_BYTES");
    auto const codes = pretended::on_hosts(
        shapes[number], [&](collx::communicator<shm_and_tcp>& comm) { rank_main(comm, number); }, chosen);
    for (int const code : codes) CHECK(code == 0);
  }
}

}  // namespace

TEST_CASE("composite: every kind of schedule, whichever ranks share a host") {
  check_on(
      {{1, 1}, {1, 2}, {1, 1, 2}, {1, 1, 2, 2}, {1, 1, 1, 2}, {1, 2, 3, 3}, {1, 2, 1, 2}, {2, 1, 1, 3, 2}},
      [](auto& comm, std::size_t number) {
        // The more ranks, the more processes a machine has to run in turn.
        auto const every = static_cast<std::size_t>(comm.size() * comm.size() / 2);
        walk_in<forms::blocking, algorithms>(comm, false, {every, number});
      });
}

TEST_CASE("composite: symmetric memory, on all ranks and on some") {
  check_on({{1, 1, 2, 2}, {1, 2, 2, 1, 1}}, [](auto& comm, std::size_t number) {
    walk_in<forms::started, few>(comm, true, {4, number});
    walk_in<forms::started, few>(comm, comm.rank() % 2 == 0, {4, number + 1});
  });
}

TEST_CASE("composite: a receiver that takes a long message last keeps nobody else from his") {
  check_on({{1, 1, 1}, {1, 1, 2}, {1, 2, 1}, {1, 1, 2, 1, 2, 1}},
           [](auto& comm, std::size_t) { exchanges::every_late_last(comm); });
}

TEST_CASE("composite: nine messages to a peer wait for no receive") {
  check_on({{1, 1, 2}, {1, 2, 1, 2}}, [](auto& comm, std::size_t) {
    exchanges::nine_before_one(comm, 64);
    exchanges::nine_before_one(comm, 1023);
  });
}

TEST_CASE("composite: parts that lie inside a host, across hosts, and parts of parts") {
  check_on({{1, 1, 2, 2}, {1, 1, 1, 2}, {1, 1, 2, 3, 2}}, [](auto& comm, std::size_t number) {
    for (collx::rank_t const color : {comm.rank() % 2, comm.rank() / 2, comm.rank() == 1 ? 1 : 0}) {
      auto part = comm.split(color, -comm.rank());
      walk_in<forms::blocking, few>(part, color == 0, {4, number});
      auto smaller = part.split(part.rank() == 0 ? 0 : 1, 0);
      walk_in<forms::blocking, few>(smaller, false, {7, number});
      walk_in<forms::blocking, few>(comm, false, {17, number});  // while the parts are there
    }
  });
}

TEST_CASE("wide: composite, 6 to 33 ranks of 2 to 5 hosts, dealt out, in halves, and all but one on a host") {
  if (!is_wide_asked_for()) return;
  std::vector<hosts> shapes;
  for (rank_t size = 6; size <= oracle::reference::size_max; ++size)
    if (takes_wide(size))
      shapes.push_back(size % 3 == 0   ? dealt_out(size, 2 + size % 4)
                       : size % 3 == 1 ? filled_up(size, size / 2)
                                       : filled_up(size, size - 1));
  check_on(shapes, [](auto& comm, std::size_t number) {
    walk_in<forms::blocking, algorithms>(comm, false, {5, number});
    walk_in<forms::started, few>(comm, comm.rank() % 2 == 0, {5, number + 1});
  });
}
