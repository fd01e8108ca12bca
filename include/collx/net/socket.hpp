// SPDX-License-Identifier: Apache-2.0
// TCP sockets as collx wants them: never blocking, without delay, with a limit on how long a silent host is
// believed.
#pragma once

#include <fcntl.h>
#include <netinet/tcp.h>

#include "collx/core/environment.hpp"
#include "collx/net/address.hpp"
#include "collx/net/fd.hpp"
#include "collx/net/port_range.hpp"

namespace collx::inline abi_1::net {

// How sockets are set up. What is not set here is left to the kernel.
struct socket_settings {
  char congestion[16] = {};      // COLLX_TCP_CONGESTION: "cubic", "reno", ...; empty: the system's
  std::size_t buffer_bytes = 0;  // COLLX_TCP_BUFFER_BYTES: of each direction; 0: the kernel sizes them
  port_range ports;              // COLLX_PORTS: to listen at
  std::uint64_t silence_us = 30'000'000;  // a host that acknowledges nothing for so long is lost

  // `timeout_us`: the job's; it becomes silence_us. Throws error (bad_argument) naming the variable.
  [[nodiscard]] COLLX_COLD static socket_settings from_environment(std::uint64_t timeout_us) {
    socket_settings chosen;
    chosen.silence_us = timeout_us;
    chosen.ports = port_range::from_environment();
    chosen.buffer_bytes =
        static_cast<std::size_t>(environment::number("COLLX_TCP_BUFFER_BYTES", 0, 0, std::int64_t{1} << 30));
    char const* const named = std::getenv("COLLX_TCP_CONGESTION");
    if (named == nullptr) return chosen;
    if (std::strlen(named) >= sizeof chosen.congestion || named[0] == '\0')
      throw error(status::bad_argument,
                  "COLLX_TCP_CONGESTION is no name of a congestion control; set it to one that "
                  "`sysctl net.ipv4.tcp_allowed_congestion_control` lists, or unset it");
    std::strcpy(chosen.congestion, named);
    return chosen;
  }
};

// For set-up only: "what ADDRESS: why; advice".
[[noreturn]] COLLX_COLD inline void throw_socket(char const* what, address const& where, char const* advice) {
  throw_error(status::system_failure, "%s %s: %s; %s", what, address_text(where).text, std::strerror(errno),
              advice);
}

[[nodiscard]] inline bool set_option(int fd, int level, int option, int value) noexcept {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

// After how long a silence a connection is given up. A host that vanished sends no word: what is sent to it
// times out, and an idle connection is asked three times.
inline void bear_silence(int fd, std::uint64_t silence_us) noexcept {
  std::uint64_t const silence_ms = silence_us / 1000;
  int const patience_ms = static_cast<int>(silence_ms < 2'000'000'000 ? silence_ms : 2'000'000'000);
  int const third_s = patience_ms / 3000 < 1 ? 1 : patience_ms / 3000 > 32767 ? 32767 : patience_ms / 3000;
  (void)set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, patience_ms);
  (void)set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  (void)set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, third_s);
  (void)set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, third_s);
  (void)set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 2);
}

// What errno is when the system refuses the congestion control that was asked for: it has none of that name,
// or root alone may choose it (EPERM, which an attempt to connect may come to as well, and try again).
inline constexpr int no_such_congestion = ENOENT;

// Sets up a socket that is, or will be, connected. False, with errno, if the system refuses the congestion
// control that was asked for; everything else is an improvement that can be done without.
[[nodiscard]] inline bool prepare(int fd, socket_settings const& chosen) noexcept {
  (void)set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  bear_silence(fd, chosen.silence_us);
  if (chosen.buffer_bytes != 0) {
    (void)set_option(fd, SOL_SOCKET, SO_SNDBUF, static_cast<int>(chosen.buffer_bytes));
    (void)set_option(fd, SOL_SOCKET, SO_RCVBUF, static_cast<int>(chosen.buffer_bytes));
  }
  if (chosen.congestion[0] == '\0') return true;
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, chosen.congestion,
                 static_cast<socklen_t>(std::strlen(chosen.congestion))) == 0)
    return true;
  errno = no_such_congestion;
  return false;
}

// The congestion control in force on a socket: figures are worth little without it.
struct congestion_name {
  char text[16] = {};
  explicit congestion_name(int fd) noexcept {
    socklen_t length = sizeof text - 1;
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, text, &length) != 0) text[0] = '\0';
  }
};

// Whether a connection is paced: it sends at a rate that the system finds out, and not as much as there is
// room for. So it is under bbr.
[[nodiscard]] COLLX_COLD inline bool is_paced(int fd) noexcept {
  return std::strncmp(congestion_name(fd).text, "bbr", 3) == 0;
}

// Whether connections that are set up so will be. True also where the system does not say; what a route
// chooses (ip route ... congctl) does not show.
[[nodiscard]] COLLX_COLD inline bool are_paced(socket_settings const& chosen) noexcept {
  owned_fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) fd = owned_fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || !prepare(fd.get(), chosen)) return true;
  return congestion_name(fd.get()).text[0] == '\0' || is_paced(fd.get());
}

[[nodiscard]] inline address local_address(int fd) noexcept {
  sockaddr_storage at{};
  socklen_t length = sizeof at;
  auto* const where = reinterpret_cast<sockaddr*>(&at);
  return getsockname(fd, where, &length) == 0 ? address::from_system(where) : address{};
}

[[nodiscard]] inline address peer_address(int fd) noexcept {
  sockaddr_storage at{};
  socklen_t length = sizeof at;
  auto* const where = reinterpret_cast<sockaddr*>(&at);
  return getpeername(fd, where, &length) == 0 ? address::from_system(where) : address{};
}

namespace detail {

[[nodiscard]] COLLX_COLD inline owned_fd listen_once(address const& where, socket_settings const& chosen,
                                                     int backlog) noexcept {
  int const family = where.version == 4 ? AF_INET : AF_INET6;
  owned_fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  // Or the port of a job that has just ended would be refused for a minute.
  (void)set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  // "Every address" of IPv6 includes those of IPv4.
  if (where.version == 6) (void)set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, where.is_any() ? 0 : 1);
  // Sizes of buffers must be known before a connection begins: accepted sockets inherit them.
  sockaddr_storage at;
  socklen_t const length = where.to_system(at);
  if (!prepare(fd.get(), chosen) || ::bind(fd.get(), reinterpret_cast<sockaddr const*>(&at), length) != 0 ||
      listen(fd.get(), backlog) != 0)
    fd.reset();
  return fd;
}

}  // namespace detail

// A socket that listens at `where` (port 0: one of `chosen`, or the system chooses) and never blocks. No
// socket, with errno, if that cannot be.
[[nodiscard]] COLLX_COLD inline owned_fd try_listen_at(address const& where, socket_settings const& chosen,
                                                       int backlog = 1024) noexcept {
  port_range const& ports = chosen.ports;
  if (where.port != 0 || ports.is_any()) return detail::listen_once(where, chosen, backlog);
  // The ranks of a host all look for one, and each begins elsewhere.
  auto const begin = 2 * static_cast<std::uint32_t>(::getpid());
  owned_fd fd;
  // Where the lowest ports are root's, the others will do.
  errno = EADDRINUSE;
  for (std::uint32_t i = 0; !fd && (errno == EADDRINUSE || errno == EACCES) && i < ports.try_count(); ++i)
    fd = detail::listen_once(where.with_port(ports.gate(begin, i)), chosen, backlog);
  return fd;
}

// The same; throws error (system_failure) that says what to do.
[[nodiscard]] COLLX_COLD inline owned_fd listen_at(address const& where, socket_settings const& chosen,
                                                   int backlog = 1024) {
  owned_fd fd = try_listen_at(where, chosen, backlog);
  if (!fd)
    throw_socket(
        "listening at", where,
        errno == no_such_congestion
            ? "this system has no COLLX_TCP_CONGESTION of that name, or leaves it to root; set it to one of "
              "`sysctl net.ipv4.tcp_allowed_congestion_control`, or unset it"
        : errno == EACCES ? "ports below 1024 are root's: choose others"
        : errno == EADDRINUSE && where.port == 0 && !chosen.ports.is_any()
            ? "all of COLLX_PORTS are taken: give it more (two for each rank of a host, and one for rank 0)"
        : errno == EADDRINUSE && where.port != 0 ? "give this job a port of its own"
        : errno == EADDRNOTAVAIL
            ? "this host has no such address; start rank 0 on the host that has it, or name another"
            : "raise the limit on descriptors, or choose another address or port");
  return fd;
}

// A socket on its way to `where`. It may be writable, and so connected, at once; connect_outcome() tells. No
// socket, with errno, if the attempt failed already.
[[nodiscard]] inline owned_fd begin_connect(address const& where, socket_settings const& chosen) noexcept {
  owned_fd fd(socket(where.version == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage at;
  socklen_t const length = where.to_system(at);
  if (!fd) return fd;
  if (!prepare(fd.get(), chosen) ||
      (::connect(fd.get(), reinterpret_cast<sockaddr const*>(&at), length) != 0 && errno != EINPROGRESS &&
       errno != EINTR))
    fd.reset();
  return fd;
}

// Of a socket of begin_connect: 0 connected, EINPROGRESS not yet, else why not. The system tells the reason
// once: from then on it is ENOTCONN.
[[nodiscard]] inline int connect_outcome(int fd) noexcept {
  // First whether it has ended, then how: a refusal that came in between would be taken for a connection.
  pollfd what{fd, POLLOUT, 0};
  if (::poll(&what, 1, 0) < 1) return EINPROGRESS;
  int why = 0;
  socklen_t length = sizeof why;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &length) != 0) return errno;
  if (why != 0) return why;
  address const peer = peer_address(fd);
  if (peer.version == 0) return ENOTCONN;
  // Connected to itself: a port of the ephemeral range on which nobody listens may be given to the caller.
  return local_address(fd) == peer ? ECONNREFUSED : 0;
}

}  // namespace collx::inline abi_1::net
