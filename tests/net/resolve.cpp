// SPDX-License-Identifier: Apache-2.0
// Names of hosts: what the system says of them, and that nobody waits longer than the deadline for it to say
// something.
#include "collx/net/resolve.hpp"

#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "bootstrap/folder.hpp"
#include "collx/net/socket.hpp"
#include "net/silent_names.hpp"

namespace {

using collx::now_us;
using collx::net::address;
using collx::net::known_addresses;
using collx::net::resolve;

constexpr std::uint64_t short_us = 100'000, long_us = 60'000'000;

enum outcome : int { right = 0, no_privilege, answered, asked_nobody };

// Over a file of the system; a system without it does as well.
bool replaced(char const* path, std::string const& by) {
  return mount(by.c_str(), path, nullptr, MS_BIND, nullptr) == 0 || errno == ENOENT;
}

// A process of its own from here on, whose names are asked for of 127.0.0.1 alone, on a network without a way
// out. False if it may not.
bool enter_a_place_apart(folder const& here) {
  if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0)
    return false;
  // Caches of names and other name services listen under /run.
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", "/run", "tmpfs", 0, nullptr) != 0 ||
      !replaced("/etc/resolv.conf", here.at("resolv.conf")) ||
      !replaced("/etc/nsswitch.conf", here.at("nsswitch.conf")))
    return false;
  collx::net::owned_fd const any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  return ioctl(any.get(), SIOCSIFFLAGS, &loopback) == 0;
}

// Whether a question for `name` comes; as questions write it, a part has its length in front of it.
bool is_asked_for(int server, std::string const& name) {
  char question[512];
  while (collx::net::ready_before(server, POLLIN, now_us() + long_us)) {
    ssize_t const bytes = recv(server, question, sizeof question, 0);
    if (bytes > 0 && std::string(question, static_cast<std::size_t>(bytes)).find(name) != std::string::npos)
      return true;
  }
  return false;
}

outcome ask_a_silent_server(folder const& here) {
  if (!enter_a_place_apart(here)) return no_privilege;
  collx::net::owned_fd const server(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage at;
  socklen_t const length = address::loopback(53).to_system(at);
  if (bind(server.get(), reinterpret_cast<sockaddr const*>(&at), length) != 0) return no_privilege;
  known_addresses const known = resolve("node7.invalid", 1, now_us() + short_us);
  if (!known.is_late || known.all.count != 0) return answered;
  return is_asked_for(server.get(), "node7") ? right : asked_nobody;
}

}  // namespace

TEST_CASE("resolve: a name server that does not answer is waited for until the deadline") {
  folder const here;
  // Two minutes and a half, if it were left to the system.
  std::ofstream(here.at("resolv.conf")) << "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n";
  std::ofstream(here.at("nsswitch.conf")) << "hosts: dns\n";
  pid_t const child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(100);
    _exit(ask_a_silent_server(here));
  }
  int how = -1;
  pid_t const ended = waitpid(child, &how, 0);
  for (char const* name : {"resolv.conf", "nsswitch.conf"}) (void)unlink(here.at(name).c_str());
  REQUIRE(ended == child);
  REQUIRE(WIFEXITED(how));
  if (WEXITSTATUS(how) == no_privilege) MESSAGE("SKIPPED: it takes the right to make a network of its own");
  else CHECK(WEXITSTATUS(how) == right);
}

TEST_CASE("resolve: who asks goes on at the deadline, and the answer may still come") {
  silent_names names;
  std::uint64_t const began_us = now_us();
  known_addresses const known = resolve("node7", 1, began_us + short_us, names.ask);
  CHECK(now_us() - began_us >= short_us);
  CHECK(known.is_late);
  CHECK(known.all.count == 0);
  // Even if the deadline has passed already.
  CHECK(resolve("node7", 1, now_us() - 1, names.ask).is_late);
  CHECK(names.come(2));
}

TEST_CASE("resolve: an address is nobody's to look up") {
  silent_names names;
  for (char const* host : {"10.1.2.3", "::1", "fe80::1"}) {
    known_addresses const known = resolve(host, 80, now_us() + long_us, names.ask);
    REQUIRE(known.all.count == 1);
    CHECK(known.all.at[0].port == 80);
  }
  CHECK(names.who_ask() == 0);
}

TEST_CASE("resolve: a name that is known is all its addresses") {
  known_addresses const known = resolve("localhost", 7, now_us() + long_us);
  CHECK_FALSE(known.is_late);
  REQUIRE(known.all.count >= 1);
  for (std::size_t i = 0; i < known.all.count; ++i) CHECK(known.all.at[i].is_loopback());
}

TEST_CASE("resolve: a name that nobody knows is no address, and says why") {
  // No name has so long a part, or is so long: nobody on the network is asked, whose answer could be late, or
  // anything.
  for (std::size_t const length : {64u, 256u, 1000u}) {
    known_addresses const known = resolve(std::string(length, 'x').c_str(), 1, now_us() + long_us);
    CHECK(known.all.count == 0);
    CHECK_FALSE(known.is_late);
    CHECK(std::string(known.why) != "");
  }
}
