// SPDX-License-Identifier: Apache-2.0
// A message over a UNIX socket and, with it, a descriptor: who receives it gets one of its own, of the same
// file. And who is at the other end.
#pragma once

#include <cerrno>
#include <cstring>

#include <sys/socket.h>

#include "collx/net/fd.hpp"

namespace collx::inline abi_1::net {

// Sends all `bytes` at once and, with them, a descriptor, or none (-1). False: not sent, and errno says why.
[[nodiscard]] inline bool send_with_fd(int to, void const* text, std::size_t bytes, int fd) noexcept {
  iovec payload{const_cast<void*>(text), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  return ::sendmsg(to, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

// Receives what send_with_fd() has sent: how many bytes came, 0 at the end, or -1 with errno. More than
// `bytes` of one message come as bytes + 1. `fd` holds the descriptor, if one came; of several, one. -1 and
// EMFILE also if one was sent that this process has no room for: then the message is gone.
[[nodiscard]] inline ssize_t receive_with_fd(int from, void* text, std::size_t bytes, owned_fd& fd) noexcept {
  iovec payload{text, bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(sizeof(int));  // CMSG_SPACE would have room for a second one
  ssize_t const got = ::recvmsg(from, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  bool has_one = false;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part))
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(part), sizeof received);
      fd.reset(received);
      has_one = true;
    }
  if ((message.msg_flags & MSG_CTRUNC) != 0 && !has_one) return errno = EMFILE, -1;
  return (message.msg_flags & MSG_TRUNC) != 0 ? got + 1 : got;
}

// Who has connected, or listens, at the other end of a UNIX socket, as the kernel noted it then.
struct other_end {
  bool is_known = false;
  pid_t process = 0;  // 0: of another namespace, and not to be seen from here
  uid_t user = 0;

  // Of this user, or of the one who may do anything.
  [[nodiscard]] bool is_trusted() const noexcept { return is_known && (user == geteuid() || user == 0); }
};

[[nodiscard]] inline other_end other_end_of(int socket) noexcept {
  ucred them{};
  socklen_t length = sizeof them;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &them, &length) != 0) return {};
  return {true, them.pid, them.uid};
}

}  // namespace collx::inline abi_1::net
