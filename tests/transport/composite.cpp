// SPDX-License-Identifier: Apache-2.0
// What groups of a composite communicator take of their host's memory is given back.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include "collx/transport/composite.hpp"

#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <poll.h>

#include "collx/collx.hpp"
#include "transport/pretended_hosts.hpp"
#include "transport/without_descriptors.hpp"

using communicator = collx::communicator<pretended::shm_and_tcp>;

namespace {

// Of this process, the port at which it lets ranks in; 0: there is none.
std::uint16_t gate_port() {
  for (int fd = 3; fd < 300; ++fd) {
    int listens = 0;
    socklen_t length = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens != 0)
      if (std::uint16_t const port = collx::net::local_address(fd).port; port != 0) return port;
  }
  return 0;
}
// Whether this process has dialled who lets ranks in there.
bool has_dialled(std::uint16_t port) {
  for (int fd = 3; fd < 300; ++fd)
    if (collx::net::peer_address(fd).port == port) return true;
  return false;
}

}  // namespace

TEST_CASE("composite: groups that come and go leave the heap of each host as it was") {
  collx::transport::tcp_settings chosen;
  chosen.common = {.timeout_us = 60'000'000, .staging_bytes = 4096, .heap_bytes = std::size_t{1} << 20};
  auto const codes = pretended::on_hosts(
      {1, 1, 2, 2},
      [](communicator& comm) {
        // One rank of each host: a group has less mail than room was made for, and with what a time leaves
        // behind, 250 of them would fill the heap.
        for (int round = 0; round < 300; ++round) {
          auto across = comm.split(comm.rank() % 2, comm.rank());
          int one = 1;
          collx::all_reduce(across, std::span(&one, 1), collx::sum);
          if (one != 2) return 2;
        }
        return 0;
      },
      chosen);
  for (int const code : codes) CHECK(code == 0);
}

namespace {

// Whether a split of all fails as it should; with any other error, or none, false.
bool is_refused(communicator& comm, collx::status code, char const* what) {
  try {
    (void)comm.split(0, comm.rank());
    return false;
  } catch (collx::error const& refused) {
    return refused.code() == code && std::string(refused.what()).find(what) != std::string::npos;
  }
}

}  // namespace

TEST_CASE("composite: nobody dials a rank of his own host to ask whether it still runs") {
  collx::transport::tcp_settings chosen;
  chosen.common = {.timeout_us = 6'400'000, .staging_bytes = 4096, .heap_bytes = std::size_t{1} << 18};
  // Ranks 0 and 2 are no neighbours, so nothing else connects them: 2 waits for longer than a thirty-second
  // part of the time-out.
  auto const codes = pretended::on_hosts(
      {1, 1, 1, 2},
      [](communicator& comm) {
        std::uint16_t port = gate_port(), told = 0;
        collx::barrier(comm);
        if (comm.rank() == 0) poll(nullptr, 0, 600);
        if (comm.rank() == 0) collx::send(comm, std::span(&port, 1), 2);
        if (comm.rank() == 2) collx::receive(comm, std::span(&told, 1), 0);
        if (comm.rank() == 2 && (told == 0 || has_dialled(told))) return 2;
        // Rank 1 is its neighbour: so it is known what a dialled gate looks like.
        if (comm.rank() == 0) collx::receive(comm, std::span(&told, 1), 1);
        if (comm.rank() == 1) collx::send(comm, std::span(&port, 1), 0);
        while (comm.rank() == 0 && !has_dialled(told)) comm.engine().endpoint().progress();
        collx::barrier(comm);
        return 0;
      },
      chosen);
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE(
    "composite: a split that one rank has no descriptor or number for fails on all, and takes nothing") {
  collx::transport::tcp_settings chosen;
  chosen.common = {.timeout_us = 60'000'000, .staging_bytes = 4096, .heap_bytes = std::size_t{640} << 10};
  auto const codes = pretended::on_hosts(
      {1, 1, 2, 2},
      [](communicator& comm) {
        { auto const connects_everybody = comm.split(0, 0); }
        // 60 reservations that were not given back would fill the heap.
        for (int round = 0; round < 100; ++round) {
          std::optional<without_descriptors> limit;
          if (comm.rank() == 1) limit.emplace();
          if (!is_refused(comm, collx::status::system_failure, "rank 1 has no descriptor left")) return 2;
        }
        { auto const again = comm.split(0, 0); }
        auto& numbers = comm.engine().endpoint().space().far();
        while (comm.rank() == 2 && (numbers.new_id() & 0xff'ffff) != 0xff'fffe) {
        }
        for (int round = 0; round < 100; ++round)
          if (!is_refused(comm, collx::status::not_supported, "rank 2 has no number left")) return 3;
        return comm.failure().code == collx::status::ok ? 0 : 4;
      },
      chosen);
  for (int const code : codes) CHECK(code == 0);
}
