// SPDX-License-Identifier: Apache-2.0
// Ranks over TCP that have no descriptors left, for a while or for good.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/pairwise.hpp"
#include "collx/collx.hpp"
#include "transport/without_descriptors.hpp"
#include "watched_tcp.hpp"

namespace {

using collx::rank_t;
using collx::status;
using communicator = collx::communicator<collx::transport::tcp>;

collx::transport::tcp_settings patient() {
  collx::transport::tcp_settings chosen;
  chosen.common.timeout_us = 40'000'000;
  return chosen;
}

}  // namespace

TEST_CASE("tcp: a rank with too few descriptors says so, and all others name it, long before the deadline") {
  for (rank_t const size : {2, 5}) {
    CAPTURE(size);
    auto const codes = watched::on_tcp_processes(
        size,
        [&](communicator& comm) {
          std::uint64_t const began_us = collx::now_us();
          std::vector<int> sent(static_cast<std::size_t>(size)), got(sent.size());
          try {
            if (comm.rank() != 0) collx::all_to_all<collx::algo::pairwise>(comm, sent, std::span(got));
            without_descriptors const none(1);
            collx::all_to_all<collx::algo::pairwise>(comm, sent, std::span(got));
          } catch (collx::error const& told) {
            if (collx::now_us() - began_us > 20'000'000) return 2;
            auto const& how = told.report();
            if (comm.rank() != 0) return how.peer == 0 || how.reported_by == 0 ? 0 : 3;
            if (told.code() != status::system_failure) return 4;
            return std::strstr(told.what(), "ulimit -n") != nullptr ? 0 : 5;
          }
          return 6;
        },
        patient());
    for (int const code : codes) CHECK(code == 0);
  }
}

TEST_CASE("tcp: a rank that cannot let anybody in for a while lets them in afterwards") {
  auto const codes = watched::on_tcp_processes(
      3,
      [&](communicator& comm) {
        int value = comm.rank();
        if (comm.rank() == 2) {
          without_descriptors const none;
          std::uint64_t const until_us = collx::now_us() + 300'000;
          while (collx::now_us() < until_us) comm.engine().endpoint().progress();
        }
        collx::all_reduce(comm, std::span(&value, 1));
        return value == 3 ? 0 : 1;
      },
      patient());
  for (int const code : codes) CHECK(code == 0);
}
