// SPDX-License-Identifier: Apache-2.0
// A rank that lacks something for its part of a new group says so before the others count on it. And members
// that have theirs may use the group before the others have.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <cstring>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>

#include "collx/collx.hpp"
#include "collx/transport/sockets/membership.hpp"
#include "transport/wired.hpp"
#include "transport/without_descriptors.hpp"
#include "watched_tcp.hpp"

using communicator = collx::communicator<collx::transport::tcp>;

namespace {

int count_open() {
  int count = 0;
  for (int fd = 0; fd < 300; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

}  // namespace

TEST_CASE("tcp: a rank that lacks a descriptor for its world leaves nothing open") {
  watchdog dog;
  int const before = count_open();
  for (int const can_open : {0, 1}) {
    CAPTURE(can_open);
    wired::cables all(2);
    collx::transport::sockets::connector* const mine = all[0];
    REQUIRE(mine->fd() >= 0);  // see without_descriptors: of this class, too
    std::string said;
    try {
      without_descriptors const limit(can_open);
      (void)collx::transport::tcp::join(0, 2, {}, mine);
    } catch (collx::error const& refused) {
      said = refused.what();
    }
    CHECK(said.find("raise the limit on descriptors") != std::string::npos);
    delete all[1];
    CHECK(count_open() == before);
  }
}

TEST_CASE("tcp: a split for which one rank has no descriptor fails at once on all, and leaves nothing") {
  auto const codes = watched::on_tcp_processes(3, [](communicator& comm) {
    { auto const connects_everybody = comm.split(0, 0); }
    for (int round = 0; round < 3; ++round) {
      std::optional<without_descriptors> limit;
      if (comm.rank() == 1) limit.emplace();
      try {
        (void)comm.split(0, 0);
        return 2;
      } catch (collx::error const& refused) {
        if (refused.code() != collx::status::system_failure) return 3;
        if (std::string(refused.what()).find("rank 1 has no descriptor left") == std::string::npos) return 4;
      }
    }
    if (comm.failure().code != collx::status::ok) return 5;
    auto group = comm.split(0, 0);
    int one = 1;
    collx::all_reduce(group, std::span(&one, 1), collx::sum);
    return one == 3 ? 0 : 6;
  });
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("tcp: what came before this rank had its part of the group is found, whomever else it waits for") {
  using tcp = collx::transport::tcp;
  using collx::rank_t;
  watchdog dog;
  collx::transport::tcp_settings chosen;
  chosen.common = {.timeout_us = 60'000'000, .staging_bytes = 64 * 1024};
  wired::cables all(3);
  communicator zero = tcp::join<tcp>(0, 3, chosen, all[0]);
  communicator one = tcp::join<tcp>(1, 3, chosen, all[1]);
  communicator two = tcp::join<tcp>(2, 3, chosen, all[2]);
  // The two halves of a split, of rank 0 and rank 2.
  auto of_zero = tcp::membership::reserve(zero.engine(), 0, 3),
       of_two = tcp::membership::reserve(two.engine(), 2, 3);
  std::uint64_t const number = of_zero.token;
  auto const assemble = [&](communicator& parent, auto&& reserved) {
    collx::array<std::uint64_t> tokens(3);
    tokens[0] = number;
    parent.world().keep();
    return communicator(&parent.world(),
                        tcp::membership::assemble(parent.engine(), collx::transport::everybody(3),
                                                  parent.rank(), tokens, std::move(reserved)));
  };
  communicator early = assemble(zero, std::move(of_zero));
  auto& sender = early.engine().endpoint();
  int const sent = 7;
  sender.send(0, 2, reinterpret_cast<std::byte const*>(&sent), sizeof sent,
              collx::transport::handover::in_place);
  for (int i = 0; i < 100; ++i) sender.progress(), two.engine().endpoint().progress();
  REQUIRE(sender.unread_by(0) == collx::no_rank);

  communicator late = assemble(two, std::move(of_two));
  auto& receiver = late.engine().endpoint();
  int wanted[2] = {};
  for (rank_t const from : {0, 1})
    receiver.expect(from, from, reinterpret_cast<std::byte*>(wanted + from), sizeof sent);
  collx::transport::arrival what{};
  bool came = false;
  for (int i = 0; i < 100 && !came; ++i) {
    receiver.progress();
    came = receiver.arrived(0, 0, what);
    CHECK_FALSE(receiver.arrived(1, 1, what));  // the last one looked for, which sends nothing
  }
  REQUIRE(came);
  REQUIRE(what.bytes == sizeof sent);
  CHECK(std::memcmp(what.data, &sent, sizeof sent) == 0);
}
