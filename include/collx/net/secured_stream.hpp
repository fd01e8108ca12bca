// SPDX-License-Identifier: Apache-2.0
// What lies between the user of a connection and its socket if bytes do not travel as they are. Apart from
// what implements it, so that transports compile without OpenSSL.
#pragma once

#include <cstddef>
#include <utility>

#include <sys/uio.h>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::net {

// Never blocks. A virtual call is nothing beside the encryption behind it.
class secured_stream {
 public:
  secured_stream() = default;
  secured_stream(secured_stream const&) = delete;
  virtual ~secured_stream() = default;

  // As sendmsg(): how many bytes, the first ones of `parts`, the kernel has; or -1 with errno. After EAGAIN
  // the next call must begin with the same bytes, which may have been encrypted already; more may follow.
  [[nodiscard]] virtual ssize_t send(iovec const* parts, std::size_t count) noexcept = 0;

  // As recvmsg(); but what has come may lie in here, where no epoll set sees it: whoever stops before EAGAIN
  // must come back. `may_fetch` false: hands over only what lies in here, then EAGAIN.
  [[nodiscard]] virtual ssize_t receive(iovec const* parts, std::size_t count, bool may_fetch) noexcept = 0;

  // Says, as far as there is room, that nothing more will be sent.
  virtual void hang_up() noexcept = 0;
};

// A stream that deletes itself, or none.
class owned_stream {
 public:
  owned_stream() = default;
  explicit owned_stream(secured_stream* stream) noexcept : stream_(stream) {}
  owned_stream(owned_stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  owned_stream& operator=(owned_stream&& other) noexcept {
    if (this != &other) reset(std::exchange(other.stream_, nullptr));
    return *this;
  }
  owned_stream(owned_stream const&) = delete;
  ~owned_stream() { delete stream_; }

  [[nodiscard]] secured_stream* operator->() const noexcept { return stream_; }
  explicit operator bool() const noexcept { return stream_ != nullptr; }
  void reset(secured_stream* stream = nullptr) noexcept { delete std::exchange(stream_, stream); }

 private:
  secured_stream* stream_ = nullptr;
};

}  // namespace collx::inline abi_1::net
