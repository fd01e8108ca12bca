// SPDX-License-Identifier: Apache-2.0
// A connection whose sides have proved who they are, and what lies between its user and the socket: nothing,
// or TLS, whose own handshake then comes first.
#pragma once

#include <span>

#include "collx/net/caller.hpp"
#include "collx/net/gate.hpp"
#include "collx/net/tls_context.hpp"

namespace collx::inline abi_1::net {

// Never blocks. With TLS, what has come may lie in here, where no epoll set sees it: whoever stops reading
// before EAGAIN must come back.
class line {
 public:
  line() = default;
  // Bytes travel as they are.
  line(owned_fd socket) noexcept : socket_(std::move(socket)), greeted_(true) {}
  // That of somebody who was let in, or of a call that was answered. `tls`: what it is encrypted by; null: it
  // is not. No line, if there is no memory.
  line(guest& who, tls_context const* tls) noexcept : line(std::move(who.socket)) {
    if (tls != nullptr) protect(*tls, tls_side::listens, &who.key);
  }
  line(caller& call, tls_context const* tls) noexcept : line(call.take()) {
    secret_digest key;
    if (tls != nullptr) protect(*tls, tls_side::dials, call.session_key(key) ? &key : nullptr);
  }
  line(line&& other) noexcept { *this = std::move(other); }
  line& operator=(line&& other) noexcept {
    socket_ = std::move(other.socket_);
    secured_ = std::move(other.secured_);
    stream_ = std::exchange(other.stream_, nullptr);
    greeted_ = std::exchange(other.greeted_, false);
    return *this;
  }

  [[nodiscard]] int get() const noexcept { return socket_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(socket_); }

  // ok: both sides are ready. pending: call again when the socket can be read. peer_lost: the other side has
  // gone, or has another key.
  [[nodiscard]] status greet() noexcept {
    if (greeted_) return status::ok;
    if (stream_ == nullptr) return status::peer_lost;
    status const now = stream_->greet();
    greeted_ = now == status::ok;
    return now;
  }
  [[nodiscard]] bool has_greeted() const noexcept { return greeted_; }

  // As send() and recv(), with EAGAIN until greet() has returned ok: that happens nowhere else, so that
  // whoever has something to say to a side which has just greeted cannot miss it. After an EAGAIN of send()
  // the next one must begin with the same bytes.
  [[nodiscard]] ssize_t send(std::span<std::byte const> what) noexcept {
    if (stream_ == nullptr) return ::send(get(), what.data(), what.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    iovec const part{const_cast<std::byte*>(what.data()), what.size()};  // only read
    return greeted_ ? stream_->send(&part, 1) : (errno = EAGAIN, -1);
  }
  [[nodiscard]] ssize_t receive(std::span<std::byte> to) noexcept {
    if (stream_ == nullptr) return ::recv(get(), to.data(), to.size(), MSG_DONTWAIT);
    iovec const part{to.data(), to.size()};
    return greeted_ ? stream_->receive(&part, 1, true) : (errno = EAGAIN, -1);
  }

  void reset() noexcept { *this = line(); }
  // The socket, for others to use; none, if it is encrypted.
  [[nodiscard]] owned_fd take_socket() noexcept { return secured_ ? owned_fd() : std::move(socket_); }

 private:
  void protect(tls_context const& by, tls_side side, digest const* key) noexcept {
    greeted_ = false;
    if (key != nullptr) stream_ = by.stream_over(get(), side, *key);
    secured_.reset(stream_);
    if (stream_ == nullptr) socket_.reset();
  }

  owned_fd socket_;
  owned_stream secured_;
  tls_stream* stream_ = nullptr;  // the same
  bool greeted_ = false;
};

}  // namespace collx::inline abi_1::net
