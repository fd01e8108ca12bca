// SPDX-License-Identifier: Apache-2.0
// What protects the bytes of a connection once both sides have proved who they are. Both must have chosen the
// same: it is part of what the handshake compares.
#pragma once

#include <cstdint>

#include "collx/core/environment.hpp"

namespace collx::inline abi_1::net {

enum class protection : std::uint32_t {
  none = 0,
  tls = 1,        // TLS 1.3 with a key of this connection alone (net/tls_stream.hpp)
  checksums = 2,  // of every slice of data: against mishaps, not against anybody
  tls_and_checksums = 3,
};

[[nodiscard]] constexpr bool encrypts(protection p) noexcept {
  return (static_cast<std::uint32_t>(p) & static_cast<std::uint32_t>(protection::tls)) != 0;
}

// COLLX_TLS. Throws error (bad_argument) if it is neither 0 nor 1.
[[nodiscard]] COLLX_COLD inline bool asks_for_tls() { return environment::number("COLLX_TLS", 0, 0, 1) != 0; }

// For a transport that leaves the network to a library, of whose encryption it knows nothing: who asks for
// some must not believe to have it. Throws error (bad_argument).
COLLX_COLD inline void refuse_tls(char const* transport) {
  if (!asks_for_tls()) return;
  throw_error(status::bad_argument,
              "transport::%s: COLLX_TLS is 1, but this transport encrypts nothing itself; unset it, or use "
              "transport::tcp",
              transport);
}

// Encryption by a key that everybody can compute would only look like one. Throws error (bad_argument).
COLLX_COLD inline void require_secret(protection wanted, bool has_secret) {
  if (!encrypts(wanted) || has_secret) return;
  throw error(status::bad_argument,
              "COLLX_TLS is 1, but there is no secret that keys could be made of; set COLLX_SECRET_FILE to a "
              "file that only you can read, with the same 16 or more random bytes for all ranks (head -c 32 "
              "/dev/urandom | base64), or unset COLLX_TLS");
}

}  // namespace collx::inline abi_1::net
