// SPDX-License-Identifier: Apache-2.0
// Word of a lost rank reaches ranks that have nothing to do with it, by those that do: also where the only
// endpoint of who notices leads to the lost one.
// component: ucx
// sanitizers: no, UCX puts functions of its own in the place of the system's
#include <atomic>
#include <csignal>
#include <cstdlib>

#include <doctest/doctest.h>

#include "collx/collective/send_receive.hpp"
#include "shared_with_forks.hpp"
#include "ucx/start.hpp"

namespace {

using collx::rank_t;
using collx::status;
using communicator = collx::communicator<collx::transport::ucx>;

constexpr rank_t ranks = 4, lost = 1;
constexpr std::uint64_t deadline_us = 40'000'000;

struct points {
  arrivals here;
  std::atomic<int> told{0};
};

// Rank 0 waits for the lost one and stays, the others wait for the next one around. 0: as it should be.
int wait_around(communicator& world, points& all) {
  all.here.come();
  all.here.wait_for(ranks);
  if (world.rank() == lost) std::raise(SIGKILL);
  std::uint64_t const begun_us = collx::now_us();
  int word = 0;
  status const how = collx::try_receive(world, std::span(&word, 1), (world.rank() + 1) % ranks);
  std::uint64_t const took_us = collx::now_us() - begun_us;
  collx::failure_report const& report = world.failure();
  if (world.rank() == 0) {
    while (all.told.load() < ranks - 2) world.engine().endpoint().progress();
    return how == status::peer_lost && report.peer == lost ? 0 : 2;
  }
  all.told.fetch_add(1);
  if (how != status::aborted || report.reported_by != 0 || report.peer != lost) return 3;
  return took_us < deadline_us / 2 ? 0 : 4;
}

void check_all_are_told() {
  collx::transport::settings chosen = collx::transport::settings::from_environment();
  chosen.timeout_us = deadline_us;
  shared_with_forks<points> const all;
  auto const codes = ucx_ranks::run<collx::transport::ucx>(
      ranks, [&](communicator& world, auto const&) { return wait_around(world, *all); }, chosen);
  for (rank_t r = 0; r < ranks; ++r) {
    CAPTURE(r);
    CHECK(codes[static_cast<std::size_t>(r)] == (r == lost ? 128 + SIGKILL : 0));
  }
}

}  // namespace

TEST_CASE("ucx over tcp: word of a lost rank gets round it") {
  setenv("UCX_TLS", "tcp", 1);
  check_all_are_told();
}

TEST_CASE("ucx over shared memory: so it does there") {
  unsetenv("UCX_TLS");
  check_all_are_told();
}
