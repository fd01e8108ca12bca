// SPDX-License-Identifier: Apache-2.0
// From the name of a host to its addresses, before a deadline: resolve().
#pragma once

#include <cstring>

#include <netdb.h>

#include "collx/core/side_call.hpp"
#include "collx/net/address.hpp"

namespace collx::inline abi_1::net {

// What is known of a name.
struct known_addresses {
  address_list all;      // empty: nobody knows any, or nobody has said
  char const* why = "";  // if empty, in the system's words
  bool is_late = false;  // nobody has said before the deadline
};

// Whom to ask. `flags`: as getaddrinfo() takes them.
using look_up = known_addresses (*)(char const* host, std::uint16_t port, int flags);

// Takes as long as the system likes: /etc/resolv.conf says how often, and for how long, it asks each server.
[[nodiscard]] COLLX_COLD inline known_addresses ask_system(char const* host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  int const failed = getaddrinfo(host, nullptr, &hints, &found);
  known_addresses known;
  if (failed != 0) {
    known.why = gai_strerror(failed);
    return known;
  }
  for (addrinfo const* each = found; each != nullptr; each = each->ai_next) {
    address const one = address::from_system(each->ai_addr).with_port(port);
    if (one.version != 0) known.all.add(one);
  }
  freeaddrinfo(found);
  return known;
}

// What a name, or an address as text ("::1", "10.0.0.1", without brackets), stands for now. For an address
// nobody is asked. A name is looked up by a thread of its own: getaddrinfo() has no deadline, and cannot be
// interrupted. If it is late the thread goes on for as long as the system asks, touches nothing but what it
// owns, and ends by itself or with the process; a process that forks meanwhile has it in the parent alone.
// Throws error (system_failure) if there is no thread.
[[nodiscard]] COLLX_COLD inline known_addresses resolve(char const* host, std::uint16_t port,
                                                        std::uint64_t deadline_us, look_up ask = ask_system) {
  known_addresses known = ask(host, port, AI_NUMERICHOST);
  std::size_t const length = std::strlen(host);
  struct {
    char host[256];
    std::uint16_t port;
    look_up ask;
  } question{{}, port, ask};
  if (known.all.count != 0 || length >= sizeof question.host) return known;  // no name is so long
  std::memcpy(question.host, host, length);
  side_call<known_addresses> const asked("the look-up of a host's name", [question](known_addresses& answer) {
    answer = question.ask(question.host, question.port, 0);
  });
  if (asked.wait_until(deadline_us)) return asked.answer();
  known = known_addresses();
  known.is_late = true;
  return known;
}

}  // namespace collx::inline abi_1::net
