// SPDX-License-Identifier: Apache-2.0
// A rank gives up before it is connected with anybody, and leaves: the others are told.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <atomic>
#include <cstdlib>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "shared_with_forks.hpp"
#include "watched_tcp.hpp"

namespace {

using collx::rank_t;
using collx::status;
using communicator = collx::communicator<collx::transport::tcp>;

// How long leaving takes.
std::uint64_t abort_and_leave(communicator& comm) {
  comm.abort();
  std::uint64_t const before_us = collx::now_us();
  {
    communicator const leaves = std::move(comm);
  }
  return collx::now_us() - before_us;
}

// What the others' exit codes say: 0: told who gave up; else 1 and the status they ended with, or 99.
// `leaving_us`: how long `who` took to leave.
collx::bootstrap::exit_codes abort_at_once(rank_t size, rank_t who, bool tls,
                                           std::atomic<std::uint64_t>& leaving_us) {
  collx::transport::tcp_settings chosen;
  chosen.common.timeout_us = 20'000'000;
  chosen.tls = tls;
  // Who gives up waits a second only for others to be told: all are there before it does, and have met by a
  // way of their own.
  shared_with_forks<arrivals> here;
  return watched::on_tcp_processes(
      size,
      [&](communicator& comm) {
        here->come();
        here->wait_for(size);
        if (comm.rank() == who) {
          leaving_us = abort_and_leave(comm);
          return 0;
        }
        std::vector<int> values(1000);
        try {
          collx::all_reduce(comm, std::span(values));
        } catch (collx::error const& failure) {
          collx::failure_report const& how = failure.report();
          bool const is_told = how.code == status::aborted && how.reported_by == who;
          return is_told ? 0 : 1 + static_cast<int>(how.code);
        }
        return 99;
      },
      chosen);
}

}  // namespace

TEST_CASE("tcp: a rank that gives up before it is connected with anybody tells the others") {
  setenv("COLLX_SECRET", "the secret of these tests", 1);
  for (bool const tls : {false, true})
    for (rank_t const size : {2, 4})
      for (rank_t who = 0; who < size; ++who) {
        CAPTURE(tls);
        CAPTURE(size);
        CAPTURE(who);
        // Who has waited for all of its second may have left before a neighbour that the machine held up had
        // come.
        shared_with_forks<std::atomic<std::uint64_t>> leaving_us;
        collx::bootstrap::exit_codes codes = abort_at_once(size, who, tls, *leaving_us);
        for (int again = 0; again < 5 && *leaving_us >= 1'000'000; ++again)
          codes = abort_at_once(size, who, tls, *leaving_us);
        for (int const code : codes) CHECK(code == 0);
      }
  unsetenv("COLLX_SECRET");
}

TEST_CASE("tcp: who gives up and leaves does not wait for long for a neighbour that looks at nothing") {
  collx::transport::tcp_settings chosen;
  chosen.common.timeout_us = 60'000'000;
  shared_with_forks<std::atomic<bool>> has_left;
  auto const codes = watched::on_tcp_processes(
      2,
      [&](communicator& comm) {
        if (comm.rank() == 1) {
          while (!*has_left) poll(nullptr, 0, 1);
          return 0;
        }
        std::uint64_t const leaving_us = abort_and_leave(comm);
        *has_left = true;
        return leaving_us < 30'000'000 ? 0 : 1;
      },
      chosen);
  for (int const code : codes) CHECK(code == 0);
}
