// SPDX-License-Identifier: Apache-2.0
// A rank forks: the child, which has copies of everything but of the memory that ranks share, takes no leave
// in the rank's name when it ends, and wipes nothing.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "transport/forking.hpp"
#include "transport/pretended_hosts.hpp"

namespace {

// Communicators come and go, and rank 0 forks while each is there.
int forks_often(auto& comm) {
  std::vector<int> values(5000);
  int const n = comm.size(), sum = n * (n - 1) / 2;
  auto kept = comm.template allocate<int>(5000);
  kept[4999] = 7;
  if (comm.rank() == 0 && !(dies_with(kept) && dies_with(comm))) return 1;
  for (int round = 0; round < 100; ++round) {
    auto part = comm.split(0, 0);
    collx::barrier(part);
    if (comm.rank() == 0 && !dies_with(part)) return 2;
    for (int i = 0; i < 3; ++i) {
      for (int& each : values) each = round + i + comm.rank();
      collx::all_reduce(part, std::span(values));
      for (int const each : values)
        if (each != n * (round + i) + sum) return 3;
    }
  }
  return kept[4999] == 7 ? 0 : 4;
}

}  // namespace

TEST_CASE("shm: a child that a rank forks takes no leave for it, and wipes none of its memory") {
  auto const codes = watched::on_processes(3, [](auto& comm) { return forks_often(comm); });
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("composite: a child that a rank forks takes no leave for it") {
  collx::transport::tcp_settings chosen;
  chosen.common.timeout_us = 30'000'000;
  auto const codes = pretended::on_hosts(
      {0, 0, 1}, [](auto& comm) { return forks_often(comm); }, chosen);
  for (int const code : codes) CHECK(code == 0);
}
