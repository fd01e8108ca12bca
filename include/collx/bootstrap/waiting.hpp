// SPDX-License-Identifier: Apache-2.0
// What a rank of a meeting waits for: one of some descriptors, or a time.
#pragma once

#include "collx/net/line.hpp"

namespace collx::inline abi_1::bootstrap {

// Waits until one of these descriptors (-1: none) is ready, or until a time.
inline void wait_for(pollfd const& one, pollfd const& other, pollfd const& third,
                     std::uint64_t until_us) noexcept {
  pollfd all[3] = {one, other, third};
  std::uint64_t const now = now_us();
  std::uint64_t const rest_us = until_us > now ? until_us - now : 0;
  timespec const rest{static_cast<time_t>(rest_us / 1'000'000),
                      static_cast<long>(rest_us % 1'000'000 * 1000)};
  (void)::ppoll(all, 3, &rest, nullptr);
}
inline void wait_for(pollfd const& one, pollfd const& other, std::uint64_t until_us) noexcept {
  wait_for(one, other, {-1, POLLIN, 0}, until_us);
}

[[nodiscard]] inline pollfd readable(int fd) noexcept { return {fd, POLLIN, 0}; }
[[nodiscard]] inline pollfd ready_for(net::caller const& call) noexcept {
  return {call.fd(), static_cast<short>(call.wants_write() ? POLLOUT : POLLIN), 0};
}

// Until both sides of a connection are ready. False: by then they are not, or it has failed.
inline bool greet(net::line& one, std::uint64_t until_us) noexcept {
  while (one.greet() == status::pending && now_us() < until_us)
    wait_for(readable(one.get()), readable(-1), until_us);
  return one.has_greeted();
}

// Receives what is there of a text, of which there are `have` bytes so far. False: the other side has gone.
[[nodiscard]] inline bool hear(net::line& from, std::byte* text, std::size_t bytes,
                               std::size_t& have) noexcept {
  ssize_t const got = from.receive({text + have, bytes - have});
  if (got > 0) have += static_cast<std::size_t>(got);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace collx::inline abi_1::bootstrap
