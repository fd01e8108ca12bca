// SPDX-License-Identifier: Apache-2.0
// Word of the first failure, as it travels between ranks.
#pragma once

#include "collx/transport/mapped/alarm.hpp"
#include "collx/transport/sockets/frame.hpp"

namespace collx::inline abi_1::transport::sockets {

[[nodiscard]] COLLX_COLD inline frame frame_of(mapped::first_failure const& first) noexcept {
  frame what;
  what.kind = frame_kind::alarm;
  what.message = static_cast<std::uint32_t>(first.code);
  what.offset = static_cast<std::uint32_t>(first.reporter);
  what.consumed = static_cast<std::uint32_t>(first.culprit);
  return what;
}

// False: what a peer says is no failure that a rank of a world of `size` can report.
[[nodiscard]] COLLX_COLD inline bool failure_of(frame const& what, rank_t size,
                                                mapped::first_failure& out) noexcept {
  auto const in_world = [&](std::uint32_t r) noexcept {
    return static_cast<rank_t>(r) == no_rank || r < static_cast<std::uint32_t>(size);
  };
  if (what.message == 0 || what.message > static_cast<std::uint32_t>(status::system_failure) ||
      !in_world(what.offset) || !in_world(what.consumed))
    return false;
  out = {static_cast<status>(what.message), static_cast<rank_t>(what.offset),
         static_cast<rank_t>(what.consumed)};
  return true;
}

}  // namespace collx::inline abi_1::transport::sockets
