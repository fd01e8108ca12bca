// SPDX-License-Identifier: Apache-2.0
// A caller whom nobody answers, or somebody who is no gate, says how that was. Among gates: gate.cpp.
// component: tcp
// thread sanitizer: no, there is one thread
// ctest: LABELS waits
#include "collx/net/caller.hpp"

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/reserved_port.hpp"
#include "transport/without_descriptors.hpp"

namespace {

using namespace collx::net;
using collx::now_us;
using collx::status;

caller call(address const& where, std::uint64_t timeout_us = 60'000'000) {
  constexpr char const* text = "the secret of these tests";
  return {where,
          introduction{purpose::link, 1, 0, 100, 1, 4},
          credentials(secret::of(std::span(text, std::strlen(text))), 7),
          {},
          now_us() + timeout_us};
}

void say(owned_fd const& to, std::string const& text) {
  (void)!send(to.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

TEST_CASE("a caller that nobody answers says how it was not answered") {
  auto const reason = [](address const& where) {
    caller one = call(where, 200'000);
    while (one.progress() == status::pending) poll(nullptr, 0, 1);
    CHECK(one.progress() == status::timeout);
    return std::string(one.reason());
  };
  owned_fd const deaf = listen_at(address::loopback(0), {}, 0);
  address const at = local_address(deaf.get());
  CHECK(reason(reserved_port().where()) == "Connection refused");
  CHECK(reason(at) == "it takes the connection and says nothing");
  // A queue that is full drops what comes, as firewalls do.
  std::vector<owned_fd> queue;
  do queue.push_back(begin_connect(at, {}));
  while (queue.size() < 100 && ready_before(queue.back().get(), POLLOUT, now_us() + 200'000));
  REQUIRE(queue.size() < 100);
  CHECK(reason(at) == "nothing comes back, not even a refusal: a firewall, perhaps");
  without_descriptors const none;
  caller lacks = call(at);
  CHECK(lacks.progress() == status::system_failure);
  CHECK(std::string(lacks.reason()) == "Too many open files");
}

// Of which the system has one that root alone may choose.
TEST_CASE("a congestion control that is refused ends an attempt at once, whatever the reason") {
  auto const listed = [](char const* name) {
    std::ifstream file(std::string("/proc/sys/net/ipv4/tcp_") + name + "_congestion_control");
    return std::set<std::string>(std::istream_iterator<std::string>(file), {});
  };
  std::set<std::string> refused{"none-such"};
  auto const allowed = listed("allowed");
  for (std::string const& each : listed("available"))
    if (allowed.count(each) == 0) refused.insert(each);
  if (refused.size() == 1) MESSAGE("SKIPPED in part: there is none that root alone may choose");
  pid_t const user = fork();
  if (user == 0) {
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(1);
    for (std::string const& each : refused) {
      socket_settings chosen;
      std::strncpy(chosen.congestion, each.c_str(), sizeof chosen.congestion - 1);
      credentials const nobodys(secret(), 7);
      caller one(address::loopback(9), introduction{}, nobodys, chosen, now_us() + 60'000'000);
      if (one.progress() != status::system_failure) _exit(2);
      if (std::string(one.reason()) != "this congestion control is refused") _exit(3);
      try {
        (void)listen_at(address::loopback(0), chosen);
        _exit(4);
      } catch (collx::error const& why) {
        std::string const text = why.what();
        if (text.find("no COLLX_TCP_CONGESTION of that name") == std::string::npos) _exit(5);
      }
    }
    _exit(0);
  }
  int how = 0;
  REQUIRE(waitpid(user, &how, 0) == user);
  CHECK(WIFEXITED(how));
  CHECK(WEXITSTATUS(how) == 0);
}

TEST_CASE("a caller goes on with the pauses of the one before it") {
  reserved_port const closed;
  caller::rhythm pauses;
  CHECK(pauses.pause_us == 500);
  std::uint32_t dialled = 0;
  std::uint64_t const began_us = now_us();
  // As many callers as it takes; each one has 10 ms, and is refused at once wherever it dials.
  while (now_us() - began_us < 1'000'000) {
    caller one = call(closed.where());
    one.keep(pauses);
    for (std::uint64_t const end_us = now_us() + 10'000; now_us() < end_us; poll(nullptr, 0, 1))
      CHECK(one.progress() == status::pending);
    pauses = one.pauses();
    dialled += one.attempts();
  }
  CHECK(pauses.pause_us == 50'000);
  CHECK(pauses.next_us > began_us);
  // Pauses of 0.5 ms, half as much more each time, up to 50 ms: 11 of them in 130 ms, then 20 a second.
  CHECK(dialled >= 5);
  CHECK(dialled <= 32);
}

TEST_CASE("a caller whose listener stops in the middle of the handshake says so") {
  owned_fd const slow = listen_at(address::loopback(0), {});
  caller one = call(local_address(slow.get()), 3'000'000);
  while (one.progress() == status::pending && !ready_before(slow.get(), POLLIN, now_us() + 1000)) {
  }
  owned_fd const accepted(accept4(slow.get(), nullptr, nullptr, SOCK_CLOEXEC));
  say(accepted, "collxtcp");  // how a challenge begins
  while (one.progress() == status::pending) poll(nullptr, 0, 1);
  CHECK(one.progress() == status::timeout);
  CHECK(std::string(one.reason()) == "it answers, and says no more before the handshake has ended");
}

TEST_CASE("a caller that meets a listener of another kind says so") {
  owned_fd const web = listen_at(address::loopback(0), {});
  caller one = call(local_address(web.get()));
  while (one.progress() == status::pending && !ready_before(web.get(), POLLIN, now_us() + 1000)) {
  }
  owned_fd const accepted(accept4(web.get(), nullptr, nullptr, SOCK_CLOEXEC));
  say(accepted, "HTTP/1.1 400 Bad Request\r\n\r\n" + std::string(100, ' '));
  while (one.progress() == status::pending) {
  }
  CHECK(one.progress() == status::mismatch);
  CHECK(one.refusal() == verdict::not_collx);
}
