// SPDX-License-Identifier: Apache-2.0
// Bytes that nobody can foresee, from the kernel.
#pragma once

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <span>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::net {

// Not OpenSSL's, which would spend half a millisecond on a generator of its own. False, with errno, if the
// system has none.
[[nodiscard]] inline bool random_bytes(std::span<std::byte> out) noexcept {
  for (std::size_t have = 0; have < out.size();) {
    ssize_t const got = getrandom(out.data() + have, out.size() - have, 0);
    if (got < 0 && errno != EINTR) return false;
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace collx::inline abi_1::net
