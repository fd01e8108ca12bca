// SPDX-License-Identifier: Apache-2.0
// Every schedule over sockets: ranks that are threads with worlds of their own. Also with several connections
// per pair, small slices and checksums; and between processes that listen at ports, of IPv6 and IPv4.
// Asked for, up to 33.
// ctest: TIMEOUT 300
// component: tcp
#include <doctest/doctest.h>

#include "asked_for.hpp"
#include "collective/each_rank.hpp"
#include "collx/bootstrap/tcp_processes.hpp"
#include "collx/bootstrap/threads.hpp"
#include "sample.hpp"
#include "transport/wired.hpp"
#include "watched_tcp.hpp"

using namespace each_rank;
using collx::transport::tcp;
using collx::transport::tcp_settings;

namespace {

void walk_all(rank_t size, tcp_settings chosen) {
  chosen.common.staging_bytes = cases::staging_bytes;
  std::atomic<std::size_t> done{0};
  wired::on_wired_threads(size, chosen, [&](collx::communicator<tcp>& comm) {
    std::vector<oracle::element> memory(memory_count(size));
    done += walk<forms::blocking>(comm, memory.data());
  });
  MESSAGE(size << " ranks: collectives, counted on every rank: " << done.load());
  CHECK(done > static_cast<std::size_t>(100 * size));
}

void walk_in_processes(rank_t size, tcp_settings chosen, std::uint8_t version,
                       cases::some const& wanted = {}) {
  CAPTURE(size);
  chosen.common.staging_bytes = cases::staging_bytes;
  auto const codes = watched::on_tcp_processes(
      size,
      [&](collx::communicator<tcp>& comm) {
        std::vector<oracle::element> memory(memory_count(size));
        if (walk<forms::blocking>(comm, memory.data(), wanted) == 0)
          throw std::runtime_error("walked nothing");
      },
      chosen, version);
  for (int const code : codes) CHECK(code == 0);
}

tcp_settings three_flows_in_small_slices() {
  tcp_settings chosen;
  chosen.limits = {.flows = 3, .slice_bytes = 1024, .slices_per_flow = 2};
  chosen.checks = true;
  return chosen;
}

// Containers may have none.
bool has_ipv6() {
  try {
    (void)collx::net::listen_at(collx::net::address::loopback(0, 6), {});
    return true;
  } catch (collx::error const&) {
    return false;
  }
}

}  // namespace

TEST_CASE("tcp: every schedule of 1 to 6 ranks gives what the reference gives") {
  (void)oracle::reference::get();
  // Five and six ranks take most of a minute under a sanitizer.
  for (rank_t size = 1; size <= (sample::is_sample ? 4 : 6); ++size) walk_all(size, {});
}

TEST_CASE("tcp: and over three connections per pair, in slices of 1 KiB, with checksums") {
  (void)oracle::reference::get();
  for (rank_t size = 2; size <= (sample::is_sample ? 3 : 4); ++size)
    walk_all(size, three_flows_in_small_slices());
}

TEST_CASE("tcp: and between processes, over connections that are made when they are needed") {
  (void)oracle::reference::get();
  std::uint8_t const newest = has_ipv6() ? 6 : 4;
  WARN_MESSAGE(newest == 6, "this host has no IPv6: over IPv4 only");
  walk_in_processes(3, {}, newest);
  if (!sample::is_sample) walk_in_processes(4, {}, 4);
}

TEST_CASE("wide: tcp, every schedule of 7 to 33 processes, and over three connections per pair") {
  if (!is_wide_asked_for()) return;
  (void)oracle::reference::get();
  for (rank_t size = 7; size <= oracle::reference::size_max; ++size)
    if (takes_wide(size))
      walk_in_processes(size, size % 4 == 1 ? three_flows_in_small_slices() : tcp_settings{}, 4,
                        {5, static_cast<std::size_t>(size)});
}
