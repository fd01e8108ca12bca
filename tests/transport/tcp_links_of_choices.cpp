// SPDX-License-Identifier: Apache-2.0
// The library's own choice of algorithm connects no rank with all others, in any collective that can do
// without.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/collx.hpp"
#include "collx/transport/composite.hpp"
#include "collx/transport/shm.hpp"
#include "sample.hpp"
#include "shared_with_forks.hpp"
#include "transport/open_connections.hpp"
#include "watched_tcp.hpp"

namespace {

using collx::rank_t;
namespace contract = collx::contract;
using communicator = collx::communicator<collx::transport::tcp>;

constexpr rank_t ranks = 16, some_root = 5;
// With how many others a rank may have to do. Those that it has for control, to the next one, among them.
constexpr std::size_t links_max(rank_t size) {
  return 2 * static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(size - 1)));
}

// What ranks tell each other of their connections: the port at which each listens, and who has dialled whom.
struct found {
  arrivals listening, done, counted;
  std::array<std::atomic<int>, ranks> port_of{};
  std::array<std::array<std::atomic<bool>, ranks>, ranks> are_linked{};
};

void count_links(rank_t me, found& all) {
  std::vector<int> dialled;
  for_each_open_connection([&](int fd, int here, bool listens) {
    if (listens) all.port_of[static_cast<std::size_t>(me)] = here;
    else dialled.push_back(collx::net::peer_address(fd).port);
  });
  all.listening.come();
  all.listening.wait_for(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    bool const is_linked = std::find(dialled.begin(), dialled.end(), all.port_of[r]) != dialled.end();
    if (!is_linked) continue;
    all.are_linked[r][static_cast<std::size_t>(me)] = true;
    all.are_linked[static_cast<std::size_t>(me)][r] = true;
  }
  all.counted.come();
  all.counted.wait_for(ranks);
}

// To how many others each rank of a job is connected that has called f(communicator).
template <class F>
std::vector<std::size_t> links_after(F const& f) {
  shared_with_forks<found> const all;
  // A rank that waits for long asks after the lower one by a connection of its own: not here.
  collx::transport::tcp_settings patient;
  patient.common.timeout_us = 200'000'000;
  auto const rank_main = [&](communicator& comm) {
    f(comm);
    // Whoever is ahead counts what the others make; who has left is no more.
    all->done.come();
    all->done.wait_for(ranks);
    count_links(comm.rank(), *all);
    return 0;
  };
  for (int const code : watched::on_tcp_processes(ranks, rank_main, patient)) CHECK(code == 0);
  std::vector<std::size_t> links;
  for (auto const& row : all->are_linked)
    links.push_back(static_cast<std::size_t>(std::count(row.begin(), row.end(), true)));
  return links;
}

template <class F>
void check_few_links(char const* what, F const& f) {
  INFO(std::string(what));
  auto const links = links_after(f);
  // The ring for control is there in any case: what is counted is not nothing.
  CHECK(*std::min_element(links.begin(), links.end()) >= 2);
  CHECK(*std::max_element(links.begin(), links.end()) <= links_max(ranks));
}

// Short and long: of a vector, and of one rank's block.
constexpr std::size_t vectors[] = {3, 100'000}, blocks[] = {3, 20'000};

// The largest number of others that a rank has to do with, by what is chosen and for control; ranks of one
// group reach each other without.
template <class Contract, bool Commutative, class Endpoint>
std::size_t links_of_choice(std::size_t bytes, collx::shape n, rank_t root, collx::tune::situation with) {
  rank_t const size = n.size;
  return collx::tune::choose<Contract, Endpoint, Commutative>(
      bytes, size, with, [&]<class Algorithm>() {
        using schedule = collx::schedule_for<Contract, Algorithm>;
        std::vector<std::set<rank_t>> links(static_cast<std::size_t>(size));
        auto const link = [&](rank_t one, rank_t other) {
          if (n.inner > 1 && one / n.inner == other / n.inner) return;
          links[static_cast<std::size_t>(one)].insert(other);
          links[static_cast<std::size_t>(other)].insert(one);
        };
        for (rank_t me = 0; me < size; ++me) {
          link(me, (me + 1) % size);
          collx::problem const p{me, size, root, n.inner};
          for (std::int32_t s = 0; s < schedule::step_count(p); ++s) {
            collx::primitive const step = schedule::step(p, s);
            for (collx::peer_set const& peers : {step.from, step.to})
              for (std::int32_t k = 0; k < peers.count; ++k)
                if (peers.member(k, size) != me) link(me, peers.member(k, size));
          }
        }
        std::size_t most = 0;
        for (auto const& each : links) most = std::max(most, each.size());
        return most;
      });
}

constexpr std::size_t all_bytes[] = {1, 16'384, 65'536, 65'537, 262'144, 262'145, 4'194'305};

template <class Contract, bool Commutative = true>
void check_choice() {
  using endpoint = collx::transport::tcp::endpoint;
  INFO(std::string(Contract::name));
  for (rank_t size = 9; size <= 70; ++size)
    for (std::size_t const bytes : all_bytes)
      for (rank_t const root : {0, size / 2}) {
        if (!sample::takes(size)) continue;
        CAPTURE(size);
        CAPTURE(bytes);
        // Today rows for ranks that share processors end at 8 of them.
        for (collx::tune::situation const with : {collx::tune::situation{}, collx::tune::sharing_only})
          REQUIRE(links_of_choice<Contract, Commutative, endpoint>(bytes, size, root, with) <=
                  links_max(size));
      }
}

// Of hosts with as many ranks each, which share memory.
template <class Contract>
void check_choice_on_hosts() {
  using endpoint = collx::transport::composite<collx::transport::shm, collx::transport::tcp>::endpoint;
  INFO(std::string(Contract::name));
  for (rank_t const each : {2, 3, 8})
    for (rank_t hosts = 9 / each + 1; hosts <= 70 / each; ++hosts)
      for (std::size_t const bytes : all_bytes) {
        if (sample::is_sample && hosts % 7 != 1) continue;
        collx::shape const n(each * hosts, each);
        CAPTURE(n.size);
        CAPTURE(n.inner);
        CAPTURE(bytes);
        for (collx::tune::situation const with :
             {collx::tune::grouped_only, collx::tune::grouped_and_sharing})
          REQUIRE(links_of_choice<Contract, true, endpoint>(bytes, n, 0, with) <= links_max(n.size));
      }
}

}  // namespace

TEST_CASE("tcp: the library's own choice of a reduction connects no rank with all others") {
  check_few_links("all_reduce", [](communicator& comm) {
    for (std::size_t const count : vectors) {
      std::vector<int> values(count, 1);
      collx::all_reduce(comm, std::span(values));
      collx::all_reduce(comm, std::span(values), collx::ordered(collx::max));
    }
  });
  check_few_links("reduce", [](communicator& comm) {
    for (std::size_t const count : vectors) {
      std::vector<int> values(count, 1), out(count);
      collx::reduce(comm, std::span<int const>(values), std::span(out), collx::sum, some_root);
    }
  });
  check_few_links("reduce_scatter and reduce_scatter_v", [](communicator& comm) {
    for (std::size_t const count : blocks) {
      std::vector<int> values(count * ranks, 1), out(count);
      std::vector<std::size_t> const counts(ranks, count);
      collx::reduce_scatter(comm, std::span<int const>(values), std::span(out));
      collx::reduce_scatter_v(comm, collx::blocks<int const>{values, counts}, std::span(out));
    }
  });
  check_few_links("scan", [](communicator& comm) {
    for (std::size_t const count : vectors) {
      std::vector<int> values(count, 1), out(count);
      collx::scan(comm, std::span<int const>(values), std::span(out));
    }
  });
  check_few_links("exclusive_scan", [](communicator& comm) {
    for (std::size_t const count : vectors) {
      std::vector<int> values(count, 1), out(count);
      collx::exclusive_scan(comm, std::span<int const>(values), std::span(out));
    }
  });
}

TEST_CASE("tcp: nor does that of what only moves") {
  check_few_links("broadcast", [](communicator& comm) {
    for (std::size_t const count : vectors) {
      std::vector<int> values(count, 1);
      collx::broadcast(comm, std::span(values), some_root);
    }
  });
  check_few_links("all_gather and all_gather_v", [](communicator& comm) {
    for (std::size_t const count : blocks) {
      std::vector<int> values(count, 1), out(count * ranks);
      std::vector<std::size_t> const counts(ranks, count);
      collx::all_gather(comm, std::span<int const>(values), std::span(out));
      collx::all_gather_v(comm, std::span<int const>(values), collx::blocks<int>{out, counts});
    }
  });
  check_few_links("barrier, and split", [](communicator& comm) {
    collx::barrier(comm);
    (void)comm.split(comm.rank() % 2, 0);
  });
}

TEST_CASE("tcp: of a gather and a scatter only the root is connected with all others") {
  auto const links = links_after([](communicator& comm) {
    for (std::size_t const count : blocks) {
      std::vector<int> block(count, 1), all(count * ranks);
      collx::gather(comm, std::span<int const>(block), std::span(all), some_root);
      collx::scatter(comm, std::span<int const>(all), std::span(block), some_root);
    }
  });
  for (std::size_t r = 0; r < ranks; ++r) {
    CAPTURE(r);
    if (r == some_root) CHECK(links[r] == ranks - 1);
    else CHECK(links[r] <= 3);
  }
}

TEST_CASE("tcp: what the library chooses has few links for any number of ranks above 8") {
  check_choice<contract::all_reduce>();
  check_choice<contract::all_reduce, false>();
  check_choice<contract::reduce>();
  check_choice<contract::reduce, false>();
  check_choice<contract::reduce_scatter>();
  check_choice<contract::reduce_scatter_v>();
  check_choice<contract::scan>();
  check_choice<contract::scan, false>();
  check_choice<contract::exclusive_scan>();
  check_choice<contract::exclusive_scan, false>();
  check_choice<contract::broadcast>();
  check_choice<contract::all_gather>();
  check_choice<contract::all_gather_v>();
  check_choice<contract::barrier>();
}

TEST_CASE("composite: nor has a rank of several hosts many links to others of them") {
  check_choice_on_hosts<contract::all_reduce>();
  check_choice_on_hosts<contract::reduce_scatter>();
  check_choice_on_hosts<contract::all_gather>();
  check_choice_on_hosts<contract::barrier>();
  check_choice_on_hosts<contract::broadcast>();
  check_choice_on_hosts<contract::reduce>();
}
