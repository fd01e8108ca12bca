// SPDX-License-Identifier: Apache-2.0
// One algorithm of each kind, between processes that encrypt what they send each other; also with several
// connections per pair. What the matrix over TCP finds in schedules this one need not find again.
// Asked for, up to 33 ranks.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <cstdlib>

#include <doctest/doctest.h>

#include "asked_for.hpp"
#include "collective/each_rank.hpp"
#include "collx/bootstrap/tcp_processes.hpp"
#include "collx/collx.hpp"
#include "watched_tcp.hpp"

using namespace each_rank;
using collx::transport::tcp;
using collx::transport::tcp_settings;

namespace {

using algorithms = collx::type_list<collx::algo::direct_one_shot, collx::algo::knomial_tree<4>,
                                    collx::algo::pat, collx::algo::recursive_doubling, collx::algo::ring>;

void walk_all(rank_t size, tcp_settings chosen) {
  setenv("COLLX_SECRET", "the secret of these tests", 1);
  chosen.common.staging_bytes = cases::staging_bytes;
  chosen.tls = true;
  auto const codes = watched::on_tcp_processes(
      size,
      [&](collx::communicator<tcp>& comm) {
        std::vector<oracle::element> memory(memory_count(size));
        if (walk<forms::blocking, algorithms>(comm, memory.data()) == 0)
          throw std::runtime_error("walked nothing");
        auto half = comm.split(comm.rank() % 2, -comm.rank());
        std::vector<oracle::element> memory_of_half(memory_count(half.size()));
        if (walk<forms::started, collx::type_list<collx::algo::ring>>(half, memory_of_half.data()) == 0)
          throw std::runtime_error("walked nothing in a part");
      },
      chosen);
  for (int const code : codes) CHECK(code == 0);
}

}  // namespace

TEST_CASE("tcp with TLS: what 2 to 4 ranks get is what the reference gives, in parts of them, too") {
  (void)oracle::reference::get();
  for (rank_t size = 2; size <= 4; ++size) walk_all(size, {});
}

TEST_CASE("tcp with TLS: and over three connections per pair, in small slices, with checksums") {
  (void)oracle::reference::get();
  tcp_settings chosen;
  chosen.limits = {.flows = 3, .slice_bytes = 1024, .slices_per_flow = 2};
  chosen.checks = true;
  walk_all(3, chosen);
}

TEST_CASE("wide: tcp with TLS, 8, 17 and 33 ranks, and parts of them") {
  if (!is_wide_asked_for()) return;
  (void)oracle::reference::get();
  for (rank_t const size : {8, 17, 33}) walk_all(size, {});
}
