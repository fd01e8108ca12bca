// SPDX-License-Identifier: Apache-2.0
// Rank 0 of two over TCP. A test plays rank 1, frame by frame, and so can say what no rank of ours would.
#pragma once

#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "collx/transport/tcp.hpp"
#include "transport/held_ends.hpp"

template <int flows = 1>
struct played_peer {
  using frame = collx::transport::sockets::frame;
  static constexpr std::size_t head_bytes = collx::transport::sockets::frame_bytes;

  explicit played_peer(bool checks = false) {
    settings.common.staging_bytes = 1 << 20;
    settings.limits.flows = flows;
    settings.checks = checks;
    comm.emplace(collx::transport::tcp::join(0, 2, settings, new held_ends(theirs)));
    look();
  }
  ~played_peer() {
    if (comm) comm->abort();
    comm.reset();
    for (int const fd : theirs) close(fd);
  }

  auto& end() { return comm->engine().endpoint(); }
  void look() {
    for (int i = 0; i < 100; ++i) end().progress();
  }
  bool has_arrived() {
    collx::transport::arrival message;
    return end().arrived(0, 1, message);
  }
  bool is_broken() { return end().interrupted(1) != collx::status::ok; }

  frame hear(int connection) {
    std::byte head[head_bytes];
    frame what;
    REQUIRE(recv(theirs[connection], head, sizeof head, MSG_DONTWAIT) == ssize_t{sizeof head});
    REQUIRE(decode(head, what));
    return what;
  }
  bool hears_nothing(int connection) {
    look();
    std::byte one[1];
    return recv(theirs[connection], one, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
  }

  // A frame, and behind it a slice of zeros. One without a slice has a checksum if this rank demands them.
  void tell(int connection, frame const& what, std::size_t slice_bytes = 0) {
    write(connection, what, slice_bytes);
    look();
  }
  void write(int connection, frame what, std::size_t slice_bytes) {
    std::vector<std::byte> bytes(head_bytes + slice_bytes);
    what = mine(what);
    if (settings.checks && what.kind != collx::transport::sockets::frame_kind::data)
      add_checksum(what, nullptr);
    encode(what, bytes.data());
    write(connection, bytes);
  }
  void write(int connection, std::vector<std::byte> const& bytes) {
    REQUIRE(::send(theirs[connection], bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t(bytes.size()));
  }
  // As rank 1 says it, to the communicator of both.
  frame mine(frame what) const {
    what.communicator = 1;
    what.from = 1;
    return what;
  }

  int theirs[1 + flows];
  collx::transport::tcp_settings settings;
  std::optional<collx::communicator<collx::transport::tcp>> comm;
};
