// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 over a connection whose two sides share a key already: no certificates, no names, one set of
// ciphers. OpenSSL never sees the socket: it reads from and writes to memory, so that many records go to the
// kernel in one call, and what the kernel does not take at once is kept here.
#pragma once

#include <cerrno>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "collx/core/status.hpp"
#include "collx/net/mac.hpp"
#include "collx/net/secured_stream.hpp"

namespace collx::inline abi_1::net {

enum class tls_side : std::uint8_t { dials, listens };

class tls_stream : public secured_stream {
 public:
  static constexpr std::size_t record_bytes = 16384;  // of plain text: what the protocol allows
  static constexpr int records_per_send = 4;

  // `fd`: a connected socket that does not block, and outlives this. `key`: known to both sides, and used for
  // no other connection. After so many records the keys of one direction are replaced. is_made() says whether
  // OpenSSL had the memory.
  COLLX_COLD tls_stream(SSL_CTX* context, int fd, tls_side side, digest const& key,
                        std::uint64_t records_per_key) noexcept
      : fd_(fd), side_(side), key_(key), records_per_key_(records_per_key), ssl_(SSL_new(context)) {
    BIO* inner = nullptr;
    if (ssl_ == nullptr || BIO_new_bio_pair(&inner, sealed_bytes_max, &wire_, sealed_bytes_max) != 1) return;
    SSL_set_bio(ssl_, inner, inner);
    if (SSL_set_ex_data(ssl_, 0, this) != 1) return;
    SSL_set_psk_use_session_callback(ssl_, offer_key);
    SSL_set_psk_find_session_callback(ssl_, find_key);
    if (side == tls_side::dials) {
      SSL_set_connect_state(ssl_);
      SSL_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);  // there is no certificate that would be right
    } else {
      SSL_set_accept_state(ssl_);
    }
    made_ = true;
  }
  ~tls_stream() override {
    SSL_free(ssl_);
    BIO_free(wire_);
  }

  [[nodiscard]] bool is_made() const noexcept { return made_; }

  // Goes on with TLS's own handshake, without waiting. pending; ok: both sides have proved to have the key,
  // and the one that listens does not give up any more; peer_lost: the connection has ended, or whoever is
  // there has another key or speaks no TLS.
  [[nodiscard]] COLLX_COLD status greet() noexcept {
    for (;;) {
      if (shake_hands()) return status::ok;
      if (failed_ || ended_) return status::peer_lost;
      ssize_t const got = fetch();
      if (got < 0 && errno == EAGAIN) return status::pending;
      if (got <= 0) return status::peer_lost;
    }
  }

  // Whether what came is no TLS with this key; if not, and greet() says peer_lost, the connection has ended.
  [[nodiscard]] bool has_failed() const noexcept { return failed_; }

  // Once greet() has returned ok, and so for all below.
  [[nodiscard]] ssize_t send(iovec const* parts, std::size_t count) noexcept override {
    if (!has_sealed() && (!flush() || !seal({parts, count, 0}))) return -1;
    bool const all = flush();
    // What has left may be answered before the rest leaves, and the caller must know of it by then.
    std::size_t const left = take_left();
    return all || left != 0 ? static_cast<ssize_t>(left) : -1;  // with flush()'s errno
  }

  [[nodiscard]] ssize_t receive(iovec const* parts, std::size_t count, bool may_fetch) noexcept override {
    for (;; may_fetch = false) {
      if (std::size_t const got = unseal(parts, count)) return static_cast<ssize_t>(got);
      if (failed_) return error_of(EPROTO);
      if (ended_) return 0;
      if (!may_fetch) return error_of(EAGAIN);
      ssize_t const got = fetch();
      if (got <= 0) return got;
    }
  }

  void hang_up() noexcept override {
    if (!established_ || failed_) return;
    ERR_clear_error();
    (void)SSL_shutdown(ssl_);
    (void)flush();
  }

 private:
  // A record grows by at most so much, and room is left for a new key's announcement and for alerts.
  static constexpr std::size_t growth_bytes = 256, other_bytes = 2048;
  static constexpr std::size_t sealed_bytes_max =
      records_per_send * (record_bytes + growth_bytes) + other_bytes;

  // One that has not left entirely, or was not reported as sent: a peer can use none of it before it has all.
  struct sealed_record {
    std::size_t plain_bytes;
    std::uint64_t wire_end;  // of all bytes that ever go to the socket
  };

  // What has not been encrypted yet of the parts that send() is given.
  struct rest_of_parts {
    iovec const* part;
    std::size_t count;
    std::size_t offset;  // in the first
  };

  [[nodiscard]] static ssize_t error_of(int why) noexcept {
    errno = why;
    return -1;
  }

  // A peer that shows a certificate instead of proving to have the key is not believed: whoever is on the
  // path can do that. "Reused" is what OpenSSL calls a session that began with a key.
  [[nodiscard]] bool shake_hands() noexcept {
    ERR_clear_error();
    int outcome = SSL_do_handshake(ssl_);
    if (outcome == 1 && SSL_session_reused(ssl_) != 1) failed_ = true;
    else if (outcome == 1) outcome = confirm();
    if (outcome != 1) judge(outcome);
    else if (!failed_) finish_greeting();
    (void)flush();  // a new connection has room for it
    return established_;
  }
  // TLS lets the dialler be done without a word of whether his last ones were still heard: the other side may
  // have lost its patience meanwhile. So that one answers with a byte, and everything else follows it.
  [[nodiscard]] int confirm() noexcept {
    unsigned char word = 0;
    std::size_t moved = 0;
    return side_ == tls_side::listens ? SSL_write_ex(ssl_, &word, 1, &moved)
                                      : SSL_read_ex(ssl_, &word, 1, &moved);
  }
  // OpenSSL has made its own keys, and asks for this one no more.
  void finish_greeting() noexcept {
    established_ = true;
    wipe(key_.bytes, sizeof key_.bytes);
  }

  // Of an operation that did not succeed: it waits for more to come, the peer has said that it ends, or what
  // came is no TLS with our key.
  void judge(int outcome) noexcept {
    int const why = SSL_get_error(ssl_, outcome);
    if (why == SSL_ERROR_ZERO_RETURN) ended_ = true;
    else if (why != SSL_ERROR_WANT_READ) failed_ = true;
    if (failed_) ERR_clear_error();  // the queue is the program's, too
  }

  // Encrypts what fits into one call of send(). False, with errno: nothing. Only called when nothing is left
  // of the call before.
  [[nodiscard]] bool seal(rest_of_parts rest) noexcept {
    first_sealed_ = sealed_end_ = 0;
    while (established_ && !failed_ && sealed_end_ < records_per_send && rest.count != 0) {
      std::span<std::byte const> const record = next_record(rest);
      bool const wants_key = ++records_ % records_per_key_ == 0;
      std::size_t taken = 0;
      ERR_clear_error();
      // Another key, or nothing. There is room for all of the record, so whatever is less is a failure.
      failed_ = (wants_key && SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) ||
                SSL_write_ex(ssl_, record.data(), record.size(), &taken) != 1 || taken != record.size();
      if (!failed_) sealed_[sealed_end_++] = {taken, wire_bytes_ + BIO_ctrl_pending(wire_)};
    }
    errno = EPROTO;
    return has_sealed();
  }
  [[nodiscard]] bool has_sealed() const noexcept { return first_sealed_ != sealed_end_; }

  // The plain text of those records that have left entirely since the last call.
  [[nodiscard]] std::size_t take_left() noexcept {
    std::size_t left = 0;
    for (; has_sealed() && sealed_[first_sealed_].wire_end <= wire_bytes_; ++first_sealed_)
      left += sealed_[first_sealed_].plain_bytes;
    return left;
  }

  // A record's bytes: where they are, if they lie together, or copied together.
  [[nodiscard]] std::span<std::byte const> next_record(rest_of_parts& rest) noexcept {
    auto const take = [&](std::size_t at_most) noexcept {
      std::span<std::byte const> const all(static_cast<std::byte const*>(rest.part->iov_base),
                                           rest.part->iov_len);
      std::size_t const left = all.size() - rest.offset;
      auto const taken = all.subspan(rest.offset, left < at_most ? left : at_most);
      rest.offset += taken.size();
      if (rest.offset == all.size()) rest = {rest.part + 1, rest.count - 1, 0};
      return taken;
    };
    std::span<std::byte const> const first = take(record_bytes);
    if (first.size() == record_bytes || rest.count == 0) return first;
    std::memcpy(together_, first.data(), first.size());
    std::size_t used = first.size();
    while (used < record_bytes && rest.count != 0) {
      auto const more = take(record_bytes - used);
      std::memcpy(together_ + used, more.data(), more.size());
      used += more.size();
    }
    return {together_, used};
  }

  // False, with errno: the socket does not take all of what has been encrypted (EAGAIN), or has failed.
  [[nodiscard]] bool flush() noexcept {
    for (;;) {
      char* from = nullptr;
      int const here = BIO_nread0(wire_, &from);
      if (here <= 0) return true;
      ssize_t const sent = ::send(fd_, from, static_cast<std::size_t>(here), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return false;
      (void)BIO_nread(wire_, &from, static_cast<int>(sent));
      wire_bytes_ += static_cast<std::uint64_t>(sent);
    }
  }

  // Decrypts what has been fetched, as far as it makes whole records and there is room for them.
  [[nodiscard]] std::size_t unseal(iovec const* parts, std::size_t count) noexcept {
    std::size_t total = 0;
    for (; count != 0; ++parts, --count)
      for (std::size_t at = 0; at < parts->iov_len;) {
        if (!established_ || failed_ || ended_) return total;
        std::size_t got = 0;
        ERR_clear_error();
        int const outcome =
            SSL_read_ex(ssl_, static_cast<std::byte*>(parts->iov_base) + at, parts->iov_len - at, &got);
        if (outcome != 1) {
          judge(outcome);
          // An alert, perhaps. But records leave only where send() can say so: here the caller would read
          // the answer to them first.
          if (!has_sealed()) (void)flush();
          return total;
        }
        at += got;
        total += got;
      }
    return total;
  }

  // As recv(), to where OpenSSL reads from. Only called when that is empty.
  [[nodiscard]] ssize_t fetch() noexcept {
    for (;;) {
      char* to = nullptr;
      int const room = BIO_nwrite0(wire_, &to);
      if (room <= 0) return error_of(EPROTO);
      ssize_t const got = ::recv(fd_, to, static_cast<std::size_t>(room), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got > 0) (void)BIO_nwrite(wire_, &to, static_cast<int>(got));
      return got;
    }
  }

  // ---- the key, as OpenSSL asks for it ----------------------------------------------------------------

  [[nodiscard]] static tls_stream& of(SSL* ssl) noexcept {
    return *static_cast<tls_stream*>(SSL_get_ex_data(ssl, 0));
  }

  static int offer_key(SSL* ssl, EVP_MD const*, unsigned char const** name, std::size_t* name_bytes,
                       SSL_SESSION** out) noexcept {
    *name = key_name;
    *name_bytes = sizeof key_name;
    *out = of(ssl).session();
    return *out != nullptr;
  }
  // No session: the peer offers another key, and the handshake fails since there is no other way.
  static int find_key(SSL* ssl, unsigned char const* name, std::size_t name_bytes,
                      SSL_SESSION** out) noexcept {
    bool const ours = name_bytes == sizeof key_name && std::memcmp(name, key_name, name_bytes) == 0;
    *out = ours ? of(ssl).session() : nullptr;
    return !ours || *out != nullptr;
  }

  // A key is offered as a session of TLS 1.3 with a suite, of which only the hash counts: SHA-256, as in all
  // suites of tls_context.
  [[nodiscard]] SSL_SESSION* session() const noexcept {
    static constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    SSL_CIPHER const* const suite = SSL_CIPHER_find(ssl_, aes_128_gcm_sha256);
    SSL_SESSION* const made = SSL_SESSION_new();
    if (made != nullptr && suite != nullptr &&
        SSL_SESSION_set1_master_key(made, reinterpret_cast<unsigned char const*>(key_.bytes),
                                    digest::bytes_count) == 1 &&
        SSL_SESSION_set_cipher(made, suite) == 1 &&
        SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION) == 1)
      return made;
    SSL_SESSION_free(made);
    return nullptr;
  }

  static constexpr unsigned char key_name[] = {'c', 'o', 'l', 'l', 'x'};

  int fd_;
  tls_side side_;
  secret_digest key_;
  std::uint64_t records_per_key_, records_ = 0;
  sealed_record sealed_[records_per_send];
  int first_sealed_ = 0, sealed_end_ = 0;  // which of them are not reported as sent
  std::uint64_t wire_bytes_ = 0;           // that the kernel has taken
  SSL* ssl_;
  BIO* wire_ = nullptr;  // the socket's end of the memory that OpenSSL reads from and writes to
  bool made_ = false, established_ = false, failed_ = false, ended_ = false;
  std::byte together_[record_bytes];
};

}  // namespace collx::inline abi_1::net
