// SPDX-License-Identifier: Apache-2.0
// Where a rank can be reached: an IPv4 or IPv6 address with a port, its text, and its form on the wire.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "collx/core/error.hpp"

namespace collx::inline abi_1::net {

// A socket's address as a value. Bytes are in the order of the network, numbers in that of the host.
struct address {
  std::uint8_t version = 0;  // 4 or 6; 0: no address
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // the interface of a link-local IPv6 address; means something on this host only
  std::uint8_t bytes[16] = {};  // the first 4, or all

  static constexpr std::size_t wire_bytes = 24;

  friend bool operator==(address const&, address const&) = default;

  [[nodiscard]] static address loopback(std::uint16_t port, std::uint8_t version = 4) noexcept {
    address found;
    found.version = version;
    found.port = port;
    if (version == 4) found.bytes[0] = 127, found.bytes[3] = 1;
    else found.bytes[15] = 1;
    return found;
  }

  // Every address of this host.
  [[nodiscard]] static address any(std::uint16_t port, std::uint8_t version = 4) noexcept {
    address found;
    found.version = version;
    found.port = port;
    return found;
  }

  [[nodiscard]] bool is_loopback() const noexcept {
    return version == 4 ? bytes[0] == 127 : version == 6 && is(loopback(port, 6));
  }
  [[nodiscard]] bool is_any() const noexcept { return version != 0 && is(any(port, version)); }
  [[nodiscard]] bool is_link_local() const noexcept {
    return version == 4 ? bytes[0] == 169 && bytes[1] == 254
                        : version == 6 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
  }

  [[nodiscard]] address with_port(std::uint16_t other) const noexcept {
    address copy = *this;
    copy.port = other;
    return copy;
  }

  // The system's form; returns its length, 0 if this is no address.
  [[nodiscard]] socklen_t to_system(sockaddr_storage& out) const noexcept {
    out = sockaddr_storage{};
    if (version == 4) {
      sockaddr_in four{};
      four.sin_family = AF_INET;
      four.sin_port = htons(port);
      std::memcpy(&four.sin_addr, bytes, 4);
      std::memcpy(&out, &four, sizeof four);
      return sizeof four;
    }
    if (version != 6) return 0;
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    six.sin6_scope_id = scope;
    std::memcpy(&six.sin6_addr, bytes, 16);
    std::memcpy(&out, &six, sizeof six);
    return sizeof six;
  }

  // No address (version 0) for a family that is neither. IPv4 that came through an IPv6 socket is IPv4.
  [[nodiscard]] static address from_system(sockaddr const* in) noexcept {
    address found;
    if (in->sa_family == AF_INET) {
      sockaddr_in four;
      std::memcpy(&four, in, sizeof four);
      found.version = 4;
      found.port = ntohs(four.sin_port);
      std::memcpy(found.bytes, &four.sin_addr, 4);
    } else if (in->sa_family == AF_INET6) {
      sockaddr_in6 six;
      std::memcpy(&six, in, sizeof six);
      found.port = ntohs(six.sin6_port);
      bool const mapped = IN6_IS_ADDR_V4MAPPED(&six.sin6_addr);
      found.version = mapped ? 4 : 6;
      std::memcpy(found.bytes, six.sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
      if (!mapped) found.scope = six.sin6_scope_id;
    }
    return found;
  }

  // 24 bytes: version, 0, port, scope, the address; numbers in the order of the network.
  void encode(std::byte* out) const noexcept {
    std::uint16_t const port_on_wire = htons(port);
    std::uint32_t const scope_on_wire = htonl(scope);
    out[0] = static_cast<std::byte>(version);
    out[1] = std::byte{0};
    std::memcpy(out + 2, &port_on_wire, 2);
    std::memcpy(out + 4, &scope_on_wire, 4);
    std::memcpy(out + 8, bytes, 16);
  }

  // Reads 24 bytes that a peer sent. False, and `out` is as it was, unless they are an address that can be
  // dialled, in the one way to write it.
  [[nodiscard]] static bool decode(std::byte const* in, address& out) noexcept {
    address found;
    found.version = static_cast<std::uint8_t>(in[0]);
    std::uint16_t port_on_wire = 0;
    std::uint32_t scope_on_wire = 0;
    std::memcpy(&port_on_wire, in + 2, 2);
    std::memcpy(&scope_on_wire, in + 4, 4);
    std::memcpy(found.bytes, in + 8, 16);
    found.port = ntohs(port_on_wire);
    found.scope = ntohl(scope_on_wire);
    if (in[1] != std::byte{0} || found.port == 0) return false;
    if (found.version == 4) {
      std::uint8_t rest = 0;
      for (std::size_t i = 4; i < 16; ++i) rest |= found.bytes[i];
      if (rest != 0 || found.scope != 0) return false;
    } else if (found.version != 6) {
      return false;
    }
    if (found.is_any()) return false;
    out = found;
    return true;
  }

 private:
  [[nodiscard]] bool is(address const& other) const noexcept {
    return std::memcmp(bytes, other.bytes, sizeof bytes) == 0;
  }
};

// "10.0.0.1:29500" or "[fe80::1%2]:29500".
struct address_text {
  char text[80] = {};

  explicit address_text(address const& of) noexcept {
    char host[INET6_ADDRSTRLEN] = "nowhere";
    if (of.version != 0) inet_ntop(of.version == 4 ? AF_INET : AF_INET6, of.bytes, host, sizeof host);
    if (of.version == 4) std::snprintf(text, sizeof text, "%s:%u", host, of.port);
    else if (of.version == 0) std::snprintf(text, sizeof text, "%s", host);
    else if (of.scope == 0) std::snprintf(text, sizeof text, "[%s]:%u", host, of.port);
    else std::snprintf(text, sizeof text, "[%s%%%u]:%u", host, of.scope, of.port);
  }
};

// The addresses that a name stands for, in the order in which to try them.
struct address_list {
  static constexpr std::size_t capacity = 8;
  address at[capacity];
  std::size_t count = 0;

  address_list() = default;
  address_list(address const& one) noexcept : count(1) { at[0] = one; }  // one address is a list, too

  void add(address const& one) noexcept {
    for (std::size_t i = 0; i < count; ++i)
      if (at[i] == one) return;
    if (count < capacity) at[count++] = one;
  }
};

// A port that begins at `text`, in digits, which then points behind it. False if there is none but 0.
[[nodiscard]] COLLX_COLD inline bool parse_port(char const*& text, std::uint16_t& out) noexcept {
  std::uint32_t port = 0;
  for (; *text >= '0' && *text <= '9' && port <= 65535; ++text)
    port = port * 10 + static_cast<std::uint32_t>(*text - '0');
  out = static_cast<std::uint16_t>(port);
  return port != 0 && port <= 65535;
}

// A host and a port, as "10.0.0.1:29500", "[::1]:29500" or "node7:29500" write them.
struct host_and_port {
  char host[256] = {};
  std::uint16_t port = 0;

  // False if the text is neither.
  [[nodiscard]] COLLX_COLD static bool parse(char const* text, host_and_port& out) noexcept {
    char const* const colon = std::strrchr(text, ':');
    if (colon == nullptr || colon == text) return false;
    bool const bracketed = text[0] == '[';
    char const* const begin = bracketed ? text + 1 : text;
    char const* const end = bracketed ? colon - 1 : colon;
    if (bracketed && *end != ']') return false;
    std::size_t const length = end > begin ? static_cast<std::size_t>(end - begin) : 0;
    if (length == 0 || length >= sizeof out.host) return false;
    // An IPv6 address needs its brackets: without them nobody can tell where the port begins.
    if (!bracketed && std::memchr(begin, ':', length) != nullptr) return false;
    char const* digits = colon + 1;
    std::uint16_t port = 0;
    if (!parse_port(digits, port) || *digits != '\0') return false;
    out = host_and_port{};
    std::memcpy(out.host, begin, length);
    out.port = port;
    return true;
  }
};

}  // namespace collx::inline abi_1::net
