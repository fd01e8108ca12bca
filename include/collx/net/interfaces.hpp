// SPDX-License-Identifier: Apache-2.0
// The network interfaces of this host, and which of them a job uses (COLLX_INTERFACE).
#pragma once

#include <ifaddrs.h>
#include <net/if.h>

#include "collx/core/array.hpp"
#include "collx/net/address.hpp"
#include "collx/net/fd.hpp"

namespace collx::inline abi_1::net {

// One address of one interface that is up; its port is 0.
struct interface_address {
  char name[IF_NAMESIZE] = {};
  address at;
  address mask;  // ones where all addresses of its network are alike; version 0: unknown
};

// Every address of every interface that is up, as the system orders them. Throws error (system_failure).
[[nodiscard]] COLLX_COLD inline array<interface_address> local_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0)
    throw error(status::system_failure,
                "getifaddrs: the interfaces of this host cannot be listed; set MASTER_ADDR "
                "to a loopback address if all ranks run on this host");
  auto const usable = [](ifaddrs const* each) {
    return each->ifa_addr != nullptr && (each->ifa_flags & IFF_UP) != 0 &&
           address::from_system(each->ifa_addr).version != 0;
  };
  std::size_t count = 0;
  for (ifaddrs const* each = first; each != nullptr; each = each->ifa_next) count += usable(each);
  array<interface_address> all(count);
  std::size_t i = 0;
  for (ifaddrs const* each = first; each != nullptr; each = each->ifa_next) {
    if (!usable(each)) continue;
    std::snprintf(all[i].name, sizeof all[i].name, "%s", each->ifa_name);
    all[i].at = address::from_system(each->ifa_addr);
    if (each->ifa_netmask != nullptr) all[i].mask = address::from_system(each->ifa_netmask);
    ++i;
  }
  freeifaddrs(first);
  return all;
}

// Whether `where` is an address of this host.
[[nodiscard]] COLLX_COLD inline bool is_of_this_host(array<interface_address> const& all,
                                                     address const& where) noexcept {
  if (where.is_loopback()) return true;
  for (interface_address const& each : all)
    if (each.at.version == where.version && std::memcmp(each.at.bytes, where.bytes, sizeof where.bytes) == 0)
      return true;
  return false;
}

// Whether `where` is in a network that an interface of this host is in: no router lies between.
[[nodiscard]] COLLX_COLD inline bool is_of_own_network(array<interface_address> const& all,
                                                       address const& where) noexcept {
  for (interface_address const& each : all) {
    bool alike = each.mask.version == where.version && each.at.version == where.version;
    for (std::size_t i = 0; i < sizeof where.bytes; ++i)
      alike = alike && ((each.at.bytes[i] ^ where.bytes[i]) & each.mask.bytes[i]) == 0;
    if (alike) return true;
  }
  return false;
}

// Which of `all` a job uses; version 0 if none fits. `wanted`: names of interfaces or how they begin, in the
// order of preference, parted by commas ("ib0,eth"); a whole name goes before a beginning. Null: the first
// that is no loopback if `spans_hosts`, else the loopback. `version`: 4 or 6 where the interface has both.
[[nodiscard]] COLLX_COLD inline address choose_interface(array<interface_address> const& all,
                                                         char const* wanted, bool spans_hosts,
                                                         std::uint8_t version = 4) noexcept {
  address best;
  int best_grade = 0;
  auto const consider = [&](interface_address const& each, int grade) {
    // Link-local IPv6 addresses mean nothing to a peer, who has other interfaces. Those of IPv4 do, where a
    // cable joins two hosts and nobody gave them others; who means that one says so.
    bool const is_of_link = each.at.is_link_local();
    if (is_of_link && (each.at.version == 6 || wanted == nullptr)) return;
    grade = is_of_link ? 1 : 2 * grade + (each.at.version == version);
    if (grade > best_grade) best = each.at, best_grade = grade;
  };
  if (wanted == nullptr) {
    for (interface_address const& each : all)
      if (each.at.is_loopback() != spans_hosts) consider(each, 1);
    return best;
  }
  while (*wanted != '\0' && best.version == 0) {
    std::size_t const length = std::strcspn(wanted, ",");
    for (interface_address const& each : all)
      if (length != 0 && std::strncmp(each.name, wanted, length) == 0)
        consider(each, each.name[length] == '\0' ? 2 : 1);
    wanted += length + (wanted[length] == ',');
  }
  return best;
}

// The address that this host shows to the outside: that of its default route, of the internet protocol
// `version`. Version 0: it has none. Nothing is sent: a datagram socket only looks up the way.
[[nodiscard]] COLLX_COLD inline address outward_address(std::uint8_t version) noexcept {
  address far = address::any(9, version);  // of a network for examples, which is nobody's
  constexpr std::uint8_t four[] = {198, 51, 100, 1}, six[] = {0x20, 0x01, 0x0d, 0xb8};
  std::memcpy(far.bytes, version == 4 ? four : six, 4);
  owned_fd const fd(socket(version == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage at;
  socklen_t length = far.to_system(at);
  auto* const where = reinterpret_cast<sockaddr*>(&at);
  if (!fd || ::connect(fd.get(), where, length) != 0) return {};
  length = sizeof at;
  if (getsockname(fd.get(), where, &length) != 0) return {};
  address const own = address::from_system(where).with_port(0);
  return own.is_loopback() || own.is_link_local() ? address{} : own;
}

}  // namespace collx::inline abi_1::net
