// SPDX-License-Identifier: Apache-2.0
// Ports for tests: kept from being given to others, while nobody listens. And whether there is IPv6.
#pragma once

#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "collx/net/socket.hpp"

// A port of the loopback interface. A socket that is bound to it, but does not listen, keeps it; whoever asks
// for this port by its number (and sets SO_REUSEADDR, as listen_at() does) may listen there.
class reserved_port {
 public:
  explicit reserved_port(std::uint8_t version = 4)
      : fd_(socket(version == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_storage at;
    socklen_t const length = collx::net::address::loopback(0, version).to_system(at);
    REQUIRE(collx::net::set_option(fd_.get(), SOL_SOCKET, SO_REUSEADDR, 1));
    REQUIRE(::bind(fd_.get(), reinterpret_cast<sockaddr const*>(&at), length) == 0);
  }
  [[nodiscard]] collx::net::address where() const { return collx::net::local_address(fd_.get()); }

 private:
  collx::net::owned_fd fd_;
};

// Ports for a job that is told which to use. Not of those that the system gives to whoever asks for any: one
// of these may be another test's reserved port, where whoever asks for it by its number may listen.
inline collx::net::port_range ports_of_a_job(std::uint16_t count) {
  constexpr unsigned first = 20'000, end = 30'000;
  auto const mine =
      static_cast<std::uint16_t>(first + static_cast<unsigned>(getpid()) * 991u % (end - first - count));
  return {mine, static_cast<std::uint16_t>(mine + count - 1)};
}

// The versions of the internet protocol that this host can talk to itself with: a container may have no IPv6.
inline std::vector<std::uint8_t> versions_here() {
  if (collx::net::try_listen_at(collx::net::address::loopback(0, 6), {})) return {4, 6};
  MESSAGE("no IPv6 on this host: left out");
  return {4};
}
