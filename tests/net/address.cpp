// SPDX-License-Identifier: Apache-2.0
// Addresses as text, as the system has them and on the wire; and which interface a job uses.
#include "collx/net/address.hpp"

#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "collx/net/interfaces.hpp"
#include "collx/net/resolve.hpp"
#include "collx/net/socket.hpp"
#include "net/reserved_port.hpp"

namespace {

using collx::net::address;
using collx::net::address_list;
using collx::net::address_text;
using wire = std::array<std::byte, address::wire_bytes>;

constexpr std::uint64_t long_us = 60'000'000;

address literal(char const* host, std::uint16_t port = 7) {
  address_list const all = collx::net::ask_system(host, port, AI_NUMERICHOST).all;
  REQUIRE(all.count >= 1);
  return all.at[0];
}

wire encoded(address const& of) {
  wire bytes;
  of.encode(bytes.data());
  return bytes;
}

bool decodes(wire const& bytes) {
  address found;
  return address::decode(bytes.data(), found);
}

collx::array<collx::net::interface_address> interfaces(
    std::vector<std::pair<char const*, char const*>> const& those) {
  collx::array<collx::net::interface_address> all(those.size());
  for (std::size_t i = 0; i < those.size(); ++i) {
    std::snprintf(all[i].name, sizeof all[i].name, "%s", those[i].first);
    all[i].at = literal(those[i].second, 0);
  }
  return all;
}

}  // namespace

TEST_CASE("addresses print as people write them") {
  CHECK(std::string(address_text(literal("10.1.2.3", 80)).text) == "10.1.2.3:80");
  CHECK(std::string(address_text(literal("::1", 65535)).text) == "[::1]:65535");
  CHECK(std::string(address_text(address{}).text) == "nowhere");
  address local = literal("fe80::1");
  local.scope = 3;
  CHECK(std::string(address_text(local).text) == "[fe80::1%3]:7");
}

TEST_CASE("loopback addresses are known as such") {
  for (char const* yes : {"127.0.0.1", "127.1.2.3", "::1"}) CHECK(literal(yes).is_loopback());
  for (char const* no : {"128.0.0.1", "10.0.0.1", "::2", "::", "0.0.0.0", "fe80::1"})
    CHECK_FALSE(literal(no).is_loopback());
  CHECK(address::loopback(5, 6).is_loopback());
  CHECK_FALSE(address{}.is_loopback());
}

TEST_CASE("the system's form and back is the same address") {
  for (char const* host : {"127.0.0.1", "255.1.2.3", "::1", "2001:db8::7"}) {
    address const there = literal(host, 4321);
    sockaddr_storage at;
    CHECK(there.to_system(at) != 0);
    CHECK(address::from_system(reinterpret_cast<sockaddr const*>(&at)) == there);
  }
  CHECK(literal("::ffff:10.0.0.1") == literal("10.0.0.1"));
}

TEST_CASE("host:port is parsed, and nothing else") {
  auto const parsed = [](char const* text) {
    collx::net::host_and_port out;
    return collx::net::host_and_port::parse(text, out)
               ? out.host + std::string("|") + std::to_string(out.port)
               : std::string();
  };
  CHECK(parsed("node7:29500") == "node7|29500");
  CHECK(parsed("10.0.0.1:1") == "10.0.0.1|1");
  CHECK(parsed("[::1]:65535") == "::1|65535");
  for (char const* wrong : {"", ":", "node", "node:", ":80", "node:0", "node:65536", "node:8x", "node:-1",
                            "::1:80", "[::1]", "[]:80", "[::1:80", "node: 80", "node:99999999999999999999"})
    CHECK_MESSAGE(parsed(wrong).empty(), wrong);
  CHECK(parsed((std::string(255, 'x') + ":1").c_str()).size() == 257);
  CHECK(parsed((std::string(256, 'x') + ":1").c_str()).empty());
}

TEST_CASE("24 bytes on the wire and back are the same address") {
  collx::replayable_random random(1);
  for (int i = 0; i < 1000; ++i) {
    address there;
    there.version = i % 2 == 0 ? 4 : 6;
    there.port = static_cast<std::uint16_t>(1 + random.below(65535));
    if (there.version == 6) there.scope = random.below(3);
    for (std::size_t k = 0; k < (there.version == 4 ? 4u : 16u); ++k)
      there.bytes[k] = static_cast<std::uint8_t>(1 + random.below(255));
    address back;
    REQUIRE(address::decode(encoded(there).data(), back));
    REQUIRE(back == there);
  }
}

TEST_CASE("what no encoder writes is refused") {
  wire const good = encoded(literal("10.0.0.1", 80));
  CHECK(decodes(good));
  for (int version = 0; version < 256; ++version) {
    wire changed = good;
    changed[0] = static_cast<std::byte>(version);
    CHECK(decodes(changed) == (version == 4 || version == 6));
  }
  // Of IPv4 everything behind the address is zero, and so is the second byte; a port is not.
  for (std::size_t const i : {1u, 4u, 7u, 12u, 23u}) {
    wire changed = good;
    changed[i] = std::byte{1};
    CHECK_FALSE(decodes(changed));
  }
  CHECK_FALSE(decodes(encoded(literal("10.0.0.1", 0))));
  CHECK_FALSE(decodes(encoded(literal("0.0.0.0", 80))));
  CHECK_FALSE(decodes(encoded(literal("::", 80))));
  CHECK_FALSE(decodes(wire{}));
}

TEST_CASE("random bytes decode to nothing, or to an address that encodes to the same bytes") {
  collx::replayable_random random(2);
  for (int i = 0; i < 20000; ++i) {
    wire bytes;
    for (std::byte& each : bytes) each = static_cast<std::byte>(random.below(256));
    bytes[0] = static_cast<std::byte>(random.below(8));
    if (i % 2 == 0) bytes[1] = std::byte{0};
    address found;
    if (address::decode(bytes.data(), found)) REQUIRE(encoded(found) == bytes);
    else REQUIRE(found == address{});
  }
}

TEST_CASE("an interface is chosen by name, by its beginning, in order of preference") {
  auto const all = interfaces({{"lo", "127.0.0.1"},
                               {"lo", "::1"},
                               {"eth0", "fe80::5"},
                               {"eth0", "10.0.0.5"},
                               {"eth0", "2001:db8::5"},
                               {"eth1", "10.0.1.5"},
                               {"eth10", "10.0.10.5"},
                               {"ib0", "10.9.0.5"},
                               {"enp1", "169.254.7.5"},
                               {"enp1", "fe80::7"},
                               {"enp2", "169.254.8.5"},
                               {"enp2", "10.0.8.5"}});
  auto const chosen = [&](char const* wanted, bool spans = true, std::uint8_t version = 4) {
    std::string text(address_text(collx::net::choose_interface(all, wanted, spans, version)).text);
    return text.substr(0, text.rfind(":0"));
  };
  CHECK(chosen(nullptr) == "10.0.0.5");
  CHECK(chosen(nullptr, true, 6) == "[2001:db8::5]");
  CHECK(chosen(nullptr, false) == "127.0.0.1");
  CHECK(chosen(nullptr, false, 6) == "[::1]");
  CHECK(chosen("eth1") == "10.0.1.5");
  CHECK(chosen("eth10") == "10.0.10.5");
  CHECK(chosen("ib") == "10.9.0.5");
  CHECK(chosen("ib,eth") == "10.9.0.5");
  CHECK(chosen("enp1") == "169.254.7.5");
  CHECK(chosen("enp1", true, 6) == "169.254.7.5");
  CHECK(chosen("enp2") == "10.0.8.5");
  CHECK(chosen("enp") == "10.0.8.5");
  CHECK(chosen("wlan,eth1") == "10.0.1.5");
  CHECK(chosen("lo") == "127.0.0.1");
  CHECK(chosen("eth0", true, 6) == "[2001:db8::5]");
  CHECK(chosen("ib0", true, 6) == "10.9.0.5");
  for (char const* none : {"wlan", "", ",", "eth00"}) CHECK(chosen(none) == "nowhere");
}

TEST_CASE("a peer is on this host, in a network of it, or behind a router") {
  auto all = interfaces({{"lo", "127.0.0.1"}, {"eth0", "10.0.0.5"}, {"eth0", "2001:db8::5"},
                         {"tun0", "10.9.9.1"}});
  char const* const masks[] = {"255.0.0.0", "255.255.252.0", "ffff:ffff:ffff:ffff::", nullptr};
  for (std::size_t i = 0; i < all.size(); ++i)
    if (masks[i] != nullptr) all[i].mask = literal(masks[i], 0);
  auto const of_host = [&](char const* where) { return is_of_this_host(all, literal(where, 80)); };
  auto const of_network = [&](char const* where) { return is_of_own_network(all, literal(where, 80)); };
  for (char const* here : {"127.0.0.1", "127.3.2.1", "::1", "10.0.0.5", "2001:db8::5", "10.9.9.1"})
    CHECK_MESSAGE(of_host(here), here);
  for (char const* near : {"10.0.0.6", "10.0.3.255", "2001:db8::ffff:1"}) {
    CHECK_MESSAGE(!of_host(near), near);
    CHECK_MESSAGE(of_network(near), near);
  }
  for (char const* far : {"10.0.4.1", "10.9.9.2", "11.0.0.5", "2001:db8:0:1::5"}) {
    CHECK_MESSAGE(!of_host(far), far);
    CHECK_MESSAGE(!of_network(far), far);
  }
}

TEST_CASE("this host has a loopback interface") {
  auto const all = collx::net::local_interfaces();
  CHECK(collx::net::choose_interface(all, nullptr, false).is_loopback());
  CHECK(collx::net::choose_interface(all, "lo", true).is_loopback());
}

TEST_CASE("a socket that listens and one that connects know each other's address") {
  collx::net::socket_settings const chosen;
  for (std::uint8_t const version : versions_here()) {
    auto const listening = collx::net::listen_at(address::loopback(0, version), chosen);
    address const at = collx::net::local_address(listening.get());
    CHECK(at.port != 0);
    CHECK(at == address::loopback(at.port, version));
    auto const dialled = collx::net::begin_connect(at, chosen);
    REQUIRE(collx::net::ready_before(dialled.get(), POLLOUT, collx::now_us() + long_us));
    CHECK(collx::net::connect_outcome(dialled.get()) == 0);
    CHECK(collx::net::peer_address(dialled.get()) == at);
    // Who dials has its connection before who listens has.
    REQUIRE(collx::net::ready_before(listening.get(), POLLIN, collx::now_us() + long_us));
    collx::net::owned_fd const accepted(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    CHECK(collx::net::peer_address(accepted.get()) == collx::net::local_address(dialled.get()));
  }
}

TEST_CASE("a port whose last connection has just ended can be listened at again") {
  collx::net::socket_settings const chosen;
  auto first = collx::net::listen_at(address::loopback(0), chosen);
  address const at = collx::net::local_address(first.get());
  auto const dialled = collx::net::begin_connect(at, chosen);
  REQUIRE(collx::net::ready_before(first.get(), POLLIN, collx::now_us() + long_us));
  collx::net::owned_fd accepted(accept4(first.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(accepted);
  // Who ends it first is the one whose system remembers it, for a minute.
  accepted.reset();
  first.reset();
  REQUIRE(collx::net::ready_before(dialled.get(), POLLIN, collx::now_us() + long_us));
  CHECK(collx::net::try_listen_at(at, chosen));
}

TEST_CASE("a port where nobody listens, and one that is taken, are errors that say so") {
  collx::net::socket_settings chosen;
  reserved_port const port;
  address const at = port.where();
  auto listening = collx::net::listen_at(at, chosen);
  CHECK_THROWS_WITH_AS((void)collx::net::listen_at(at, chosen), doctest::Contains("a port of its own"),
                       collx::error);
  listening.reset();
  auto const dialled = collx::net::begin_connect(at, chosen);
  if (dialled) {
    REQUIRE(collx::net::ready_before(dialled.get(), POLLOUT, collx::now_us() + long_us));
    CHECK(collx::net::connect_outcome(dialled.get()) == ECONNREFUSED);
    CHECK(collx::net::connect_outcome(dialled.get()) == ENOTCONN);  // never taken for a connection
  }
  std::strcpy(chosen.congestion, "none-such");
  CHECK_THROWS_WITH_AS((void)collx::net::listen_at(address::loopback(0), chosen),
                       doctest::Contains("COLLX_TCP_CONGESTION"), collx::error);
}
