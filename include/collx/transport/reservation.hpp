// SPDX-License-Identifier: Apache-2.0
// What a rank has for its part of a new group, before the group is made.
#pragma once

#include <cstdint>

namespace collx::inline abi_1::transport {

// Of transports that keep it elsewhere, or need nothing that could be missing. `token`: what all members
// learn of it.
struct reservation {
  std::uint64_t token = 0;
};

}  // namespace collx::inline abi_1::transport
