// SPDX-License-Identifier: Apache-2.0
// COLLX_PORTS: which ports a job may listen at, read strictly; several sockets share them, and who finds none
// free is told what to do.
// thread sanitizer: no, there is one thread
#include "collx/net/port_range.hpp"

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collx/net/socket.hpp"
#include "net/reserved_port.hpp"

namespace {

using namespace collx::net;

port_range told(char const* value) {
  if (value == nullptr) unsetenv("COLLX_PORTS");
  else setenv("COLLX_PORTS", value, 1);
  socket_settings const chosen = socket_settings::from_environment(1'000'000);
  unsetenv("COLLX_PORTS");
  return chosen.ports;
}

socket_settings so_many(std::uint16_t count) {
  socket_settings chosen;
  chosen.ports = ports_of_a_job(count);
  return chosen;
}
socket_settings only(reserved_port const& one) {
  socket_settings chosen;
  chosen.ports = {one.where().port, one.where().port};
  return chosen;
}

}  // namespace

TEST_CASE("COLLX_PORTS is a lowest and a highest port") {
  CHECK(told(nullptr).is_any());
  CHECK(told("20000:20999").first == 20000);
  CHECK(told("20000:20999").last == 20999);
  CHECK(told("20000:20999").count() == 1000);
  CHECK(told("1:65535").count() == 65535);
  CHECK(told("29500:29500").at(7) == 29500);
}

TEST_CASE("what is no range of ports is refused, with the variable and an example") {
  for (char const* value :
       {"", ":", "30000", "30000:", ":30999", "0:100", "30000-30999", "30999:30000", "1:65536",
        "1:99999999999999999999", " 1:2", "1 :2", "1: 2", "1:2 ", "1:2:3", "+1:2", "-1:2", "a:b"}) {
    CAPTURE(value);
    try {
      (void)told(value);
      FAIL("taken");
    } catch (collx::error const& refused) {
      CHECK(refused.code() == collx::status::bad_argument);
      std::string const said = refused.what();
      CHECK(said.find("COLLX_PORTS is \"" + std::string(value) + "\"") != std::string::npos);
      CHECK(said.find("20000:20999") != std::string::npos);
    }
  }
}

TEST_CASE("sockets share the ports, each with one of its own") {
  for (std::uint8_t const version : versions_here()) {
    socket_settings const chosen = so_many(200);
    std::vector<owned_fd> open;
    std::set<int> ports;
    for (int i = 0; i < 40; ++i) {
      open.push_back(listen_at(address::loopback(0, version), chosen));
      int const port = local_address(open.back().get()).port;
      CHECK(port >= chosen.ports.first);
      CHECK(port <= chosen.ports.last);
      ports.insert(port);
    }
    CHECK(ports.size() == 40);
  }
}

TEST_CASE("of the ports, meeting places and gates have parts of their own, and gates all at the end") {
  for (int const count : {1, 2, 3, 7, 8, 9, 40, 200, 1000, 65535}) {
    CAPTURE(count);
    port_range const ports{static_cast<std::uint16_t>(65535 - count + 1), 65535};
    std::set<int> places, gates, all;
    for (std::uint32_t i = 0; i < ports.count(); ++i) places.insert(ports.place(i));
    for (std::uint32_t i = 0; i < ports.try_count(); ++i) {
      int const port = ports.gate(123'457, i);
      if (static_cast<int>(all.size()) < count - static_cast<int>(places.size())) gates.insert(port);
      all.insert(port);
    }
    CHECK(static_cast<int>(all.size()) == count);
    CHECK(*all.begin() == ports.first);
    CHECK(static_cast<int>(places.size() + gates.size()) == count);
    for (int const port : gates) CHECK(places.count(port) == 0);
  }
}

TEST_CASE("while other ports are free no gate takes one at which ranks may meet") {
  socket_settings const chosen = so_many(400);
  std::vector<owned_fd> open;
  // Of 300 ports. Any program may hold some of them.
  for (int i = 0; i < 120; ++i) {
    open.push_back(listen_at(address::loopback(0), chosen));
    CHECK(local_address(open.back().get()).port >= chosen.ports.first + 100);
  }
}

TEST_CASE("a port that is named is that, whatever the range") {
  reserved_port const named, other;
  CHECK(local_address(listen_at(named.where(), only(other)).get()) == named.where());
}

TEST_CASE("where none is free, the error says what to change") {
  reserved_port const last;
  socket_settings const chosen = only(last);
  owned_fd const first = listen_at(address::loopback(0), chosen);
  CHECK(local_address(first.get()) == last.where());
  CHECK_FALSE(try_listen_at(address::loopback(0), chosen));
  CHECK_THROWS_WITH_AS((void)listen_at(address::loopback(0), chosen),
                       doctest::Contains("all of COLLX_PORTS are taken"), collx::error);
}

TEST_CASE("ports that are root's are passed over by others") {
  constexpr int everybodys = 77;
  pid_t const child = fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (getuid() == 0 && setuid(nobody) != 0) _exit(1);
    socket_settings low, some;
    low.ports = {1023, 1023};
    if (try_listen_at(address::loopback(0), low)) _exit(everybodys);
    // This process begins to look at 1023, whatever its number.
    some.ports = {1, 64};
    unsigned const begin = 2 * static_cast<unsigned>(getpid());
    while (some.ports.gate(begin, 0) >= 50) ++some.ports.last;
    auto const up = static_cast<std::uint16_t>(1023 - some.ports.gate(begin, 0));
    some.ports = {static_cast<std::uint16_t>(1 + up), static_cast<std::uint16_t>(some.ports.last + up)};
    if (some.ports.gate(begin, 0) != 1023) _exit(3);
    _exit(try_listen_at(address::loopback(0), some) ? 0 : 2);
  }
  int how = 0;
  REQUIRE(waitpid(child, &how, 0) == child);
  if (WIFEXITED(how) && WEXITSTATUS(how) == everybodys)
    MESSAGE("SKIPPED: here ports below 1024 are everybody's");
  else
    CHECK(how == 0);
}
