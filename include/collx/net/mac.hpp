// SPDX-License-Identifier: Apache-2.0
// What the handshake needs of cryptography: codes and comparison from OpenSSL, and random bytes.
#pragma once

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <span>

#include "collx/net/random_bytes.hpp"
#include "collx/net/secret.hpp"

namespace collx::inline abi_1::net {

// An authentication code, or a key derived as one.
struct digest {
  static constexpr std::size_t bytes_count = 32;
  std::byte bytes[bytes_count] = {};
};

// One that is wiped when it is no longer needed.
struct secret_digest : digest {
  secret_digest() = default;
  explicit secret_digest(digest const& of) noexcept : digest(of) {}
  secret_digest(secret_digest const&) = default;
  secret_digest& operator=(secret_digest const&) = default;
  ~secret_digest() { wipe(bytes, sizeof bytes); }
};

// False if OpenSSL fails; `out` is zero then. OpenSSL allocates within, and gives it back.
[[nodiscard]] inline bool hmac_sha256(std::span<std::byte const> key, std::span<std::byte const> text,
                                      digest& out) noexcept {
  unsigned length = 0;
  out = digest{};
  bool const well = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                         reinterpret_cast<unsigned char const*>(text.data()), text.size(),
                         reinterpret_cast<unsigned char*>(out.bytes), &length) != nullptr &&
                    length == digest::bytes_count;
  if (!well) out = digest{};
  return well;
}

// Takes the same time wherever the first difference is.
[[nodiscard]] inline bool same(std::byte const* a, std::byte const* b, std::size_t bytes) noexcept {
  return CRYPTO_memcmp(a, b, bytes) == 0;
}

}  // namespace collx::inline abi_1::net
