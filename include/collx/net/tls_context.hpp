// SPDX-License-Identifier: Apache-2.0
// What all TLS connections of a process have in common: the version, the ciphers, and what is left out.
#pragma once

#include <new>

#include "collx/core/error.hpp"
#include "collx/net/tls_stream.hpp"

namespace collx::inline abi_1::net {

// How all connections of a process are protected. Its streams are used by one thread at a time.
class tls_context {
 public:
  // The keys of a direction are replaced long before AES-GCM wants it (2^24.5 records; RFC 8446, 5.5).
  static constexpr std::uint64_t records_per_key_default = std::uint64_t{1} << 23;

  // Of no use until assigned to.
  tls_context() = default;
  tls_context(tls_context&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), records_per_key_(other.records_per_key_) {}
  tls_context& operator=(tls_context&& other) noexcept {
    std::swap(context_, other.context_);
    records_per_key_ = other.records_per_key_;
    return *this;
  }
  tls_context(tls_context const&) = delete;
  ~tls_context() { SSL_CTX_free(context_); }

  // TLS 1.3 with keys that both sides have, and an exchange of new ones on top of them (psk_dhe_ke), so that
  // whoever learns the secret later cannot read what was recorded. No tickets: a connection is not resumed.
  // Throws error (system_failure) if OpenSSL has no TLS 1.3.
  [[nodiscard]] COLLX_COLD static tls_context create(
      std::uint64_t records_per_key = records_per_key_default) {
    tls_context made;
    made.records_per_key_ = records_per_key;
    SSL_CTX* const context = made.context_ = SSL_CTX_new(TLS_method());
    bool const well =
        context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
        SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
        SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1 &&
        SSL_CTX_set_num_tickets(context, 0) == 1;
    ERR_clear_error();
    if (!well)
      throw error(status::system_failure,
                  "COLLX_TLS is 1, but OpenSSL has no TLS 1.3 with AES-128-GCM; install one that has (1.1.1 "
                  "or newer), or unset COLLX_TLS");
    // The system's configuration may have allowed keys without the exchange.
    SSL_CTX_clear_options(context, SSL_OP_ALLOW_NO_DHE_KEX);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return made;
  }

  explicit operator bool() const noexcept { return context_ != nullptr; }

  // A stream for the caller to delete; see there. Null if there is no memory.
  [[nodiscard]] COLLX_COLD tls_stream* stream_over(int fd, tls_side side, digest const& key) const noexcept {
    auto* const made = new (std::nothrow) tls_stream(context_, fd, side, key, records_per_key_);
    if (made == nullptr || made->is_made()) return made;
    delete made;
    return nullptr;
  }

 private:
  SSL_CTX* context_ = nullptr;
  std::uint64_t records_per_key_ = records_per_key_default;
};

}  // namespace collx::inline abi_1::net
