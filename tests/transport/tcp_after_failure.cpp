// SPDX-License-Identifier: Apache-2.0
// After a failure a caller frees his memory while peers, who may not know yet, go on sending to it: the rank
// touches none of it again. And who waits for peers that have gone is told so.
// component: tcp
#include <vector>

#include <doctest/doctest.h>

#include "collx/transport/tcp.hpp"
#include "transport/held_ends.hpp"
#include "watchdog.hpp"

namespace {

using collx::transport::sockets::frame;

constexpr std::size_t bytes = 1000, first_part = 400;

void send(int to, void const* what, std::size_t count) {
  REQUIRE(::send(to, what, count, MSG_NOSIGNAL) == static_cast<ssize_t>(count));
}

std::vector<std::byte> head_of_message(std::uint32_t sequence) {
  frame f;
  f.communicator = 1;  // that of all ranks
  f.from = 1;
  f.flags = frame::ends_message;
  f.sequence = f.message = sequence;
  f.message_bytes = f.slice_bytes = bytes;
  std::vector<std::byte> head(collx::transport::sockets::frame_bytes);
  encode(f, head.data());
  return head;
}

// Nobody listens where the peers did.
class refused : public collx::transport::sockets::connector {
 public:
  void dial(collx::rank_t, int, int) noexcept override {}
  bool poll(collx::transport::sockets::connection&) noexcept override { return false; }
  int fd() const noexcept override { return bell_.get(); }
  bool is_dialling() const noexcept override { return false; }
  collx::status outlook(collx::rank_t) noexcept override { return collx::status::peer_lost; }

 private:
  collx::net::owned_fd bell_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

}  // namespace

TEST_CASE("tcp: nothing is written to a receiver's memory after a failure") {
  int theirs[2];
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = 64 * 1024;
  {
    auto comm = collx::transport::tcp::join(0, 2, chosen, new held_ends(theirs));
    auto& endpoint = comm.engine().endpoint();
    std::vector<std::byte> wanted(bytes), payload(bytes, std::byte{7});
    auto const look = [&] {
      for (int i = 0; i < 100; ++i) endpoint.progress();
    };
    endpoint.expect(0, 1, wanted.data(), bytes);
    SUBCASE("in the middle of a message") {
      auto const head = head_of_message(0);
      send(theirs[1], head.data(), head.size());
      send(theirs[1], payload.data(), first_part);
      look();
      CHECK(wanted[first_part - 1] == std::byte{7});  // it goes straight there
      comm.abort();
      send(theirs[1], payload.data(), bytes - first_part);
    }
    SUBCASE("before a message") {
      look();
      comm.abort();
      auto const head = head_of_message(0);
      send(theirs[1], head.data(), head.size());
      send(theirs[1], payload.data(), bytes);
    }
    look();
    CHECK(wanted[first_part] == std::byte{0});
    CHECK(wanted[bytes - 1] == std::byte{0});
  }
  for (int const fd : theirs) close(fd);
}

TEST_CASE("tcp: nothing is read from a sender's memory after a failure") {
  int theirs[2];
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = 8 << 20;
  {
    auto comm = collx::transport::tcp::join(0, 2, chosen, new held_ends(theirs));
    auto& endpoint = comm.engine().endpoint();
    for (int i = 0; i < 10; ++i) endpoint.progress();
    std::vector<std::byte> payload(4 << 20, std::byte{7});  // more than a socket holds
    endpoint.send(0, 1, payload.data(), payload.size(), collx::transport::handover::in_place);
    comm.abort();
    std::fill(payload.begin(), payload.end(), std::byte{9});
    std::vector<std::byte> got(1 << 20);
    std::size_t total = 0, changed = 0;
    for (int i = 0; i < 100; ++i) {
      endpoint.progress();
      ssize_t const n = recv(theirs[1], got.data(), got.size(), MSG_DONTWAIT);
      for (ssize_t k = 0; k < n; ++k) changed += got[static_cast<std::size_t>(k)] == std::byte{9};
      total += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
    CHECK(total != 0);
    CHECK(total < payload.size());
    CHECK(changed < 48);  // a head may have such bytes
  }
  for (int const fd : theirs) close(fd);
}

TEST_CASE("tcp: who waits for several peers that have gone, and looks after each in turn, is told of all") {
  watchdog dog;
  collx::transport::tcp_settings chosen;
  chosen.common = {.timeout_us = 200'000, .staging_bytes = 64 * 1024};
  auto const comm = collx::transport::tcp::join(0, 3, chosen, new refused);
  auto& endpoint = comm.engine().endpoint();
  // First word of why they have gone may come from others.
  for (collx::rank_t const peer : {1, 2}) CHECK(endpoint.interrupted(peer) == collx::status::ok);
  int lost = 0;
  while (lost != 2) {
    lost = 0;
    for (collx::rank_t const peer : {1, 2}) lost += endpoint.interrupted(peer) == collx::status::peer_lost;
  }
}
