// SPDX-License-Identifier: Apache-2.0
// The socket at which ranks of one host meet: whose it is, who may connect to it, and who stands before it.
// How ranks meet there is in connect.cpp.
#include "collx/bootstrap/rendezvous.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "bootstrap/folder.hpp"
#include "transport/without_descriptors.hpp"

namespace {

using collx::rank_t;
namespace bootstrap = collx::bootstrap;

collx::transport::settings with_timeout(std::uint64_t timeout_us) {
  collx::transport::settings chosen;
  chosen.timeout_us = timeout_us;
  return chosen;
}

// Why a rank of two did not meet the other one; empty: it did.
std::string refusal(std::string const& path, rank_t rank, std::uint64_t timeout_us) {
  try {
    collx::net::owned_fd const memory(bootstrap::meet_at(path.c_str(), rank, 2, with_timeout(timeout_us)));
  } catch (collx::error const& refused) {
    return refused.what();
  }
  return "";
}

bool holds(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

bool may_be(uid_t user) {
  pid_t const probe = fork();
  if (probe == 0) _exit(setuid(user) == 0 ? 0 : 1);
  int how = -1;
  return waitpid(probe, &how, 0) == probe && how == 0;
}

constexpr uid_t other_user = 54'321, own_user = 54'322;

}  // namespace

TEST_CASE("rendezvous: only its user can connect, whatever the umask") {
  folder const place;
  std::string const path = place.at("meet");
  mode_t const before = umask(0);
  bootstrap::detail::host const zero(path.c_str(), 2, collx::now_us());
  umask(before);
  struct stat found {};
  REQUIRE(lstat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
}

TEST_CASE("rendezvous: ranks that would wait for ever meet") {
  for (rank_t const mine : {0, 1}) {
    folder const place;
    std::string const path = place.at("meet");
    pid_t const other = fork();
    if (other == 0) _exit(refusal(path, 1 - mine, UINT64_MAX).empty() ? 0 : 1);
    CHECK(refusal(path, mine, UINT64_MAX) == "");
    int how = -1;
    REQUIRE(waitpid(other, &how, 0) == other);
    CHECK(how == 0);
  }
}

TEST_CASE("rendezvous: memory that another user offers is not taken") {
  if (!may_be(other_user) || !may_be(own_user)) {
    MESSAGE("SKIPPED: it takes the right to be another user");
    return;
  }
  folder const place;
  std::string const path = place.at("meet");
  REQUIRE(chmod(place.path().c_str(), 0777) == 0);
  pid_t const other = fork();
  if (other == 0) {
    if (setuid(other_user) != 0) _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // setuid() clears it
    _exit(refusal(path, 0, 100'000'000).empty() ? 0 : 2);
  }
  struct stat found {};
  int how = -1;
  while (lstat(path.c_str(), &found) != 0) {
    REQUIRE(waitpid(other, &how, WNOHANG) == 0);
    sched_yield();
  }
  REQUIRE(chmod(path.c_str(), 0777) == 0);  // as one would who wants to be found
  pid_t const rank = fork();
  if (rank == 0) {
    if (setuid(own_user) != 0) _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // setuid() clears it
    std::string const said = refusal(path, 1, 60'000'000);
    _exit(holds(said, "rank 1 of 2: another user (54321) listens there; give") ? 42 : 3);
  }
  CHECK(waitpid(rank, &how, 0) == rank);
  CHECK((WIFEXITED(how) && WEXITSTATUS(how) == 42));
  kill(other, SIGKILL);
  CHECK(waitpid(other, &how, 0) == other);
  CHECK(WIFSIGNALED(how));  // it was still waiting for a rank
  (void)unlink(path.c_str());
}

TEST_CASE("rendezvous: at an abstract name, which is open to all, other users get no memory and give none") {
  if (!may_be(other_user)) {
    MESSAGE("SKIPPED: it takes the right to be another user");
    return;
  }
  std::string const name = "@collx_test_" + std::to_string(getpid());
  pid_t const zero = fork();
  if (zero == 0) {
    if (setuid(own_user) != 0) _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // setuid() clears it
    _exit(refusal(name, 0, 100'000'000).empty() ? 42 : 2);
  }
  auto const as = [&](uid_t user) {
    pid_t const guest = fork();
    if (guest == 0) {
      if (setuid(user) != 0) _exit(1);
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // setuid() clears it
      sockaddr_un const where = bootstrap::detail::address_of(name.c_str());
      collx::net::owned_fd const fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      while (connect(fd.get(), reinterpret_cast<sockaddr const*>(&where), sizeof where) != 0) sched_yield();
      bootstrap::detail::hello me{};
      me.rank = 1;
      me.size = 2;
      (void)!send(fd.get(), &me, sizeof me, MSG_NOSIGNAL);
      bootstrap::detail::verdict say{};
      collx::net::owned_fd memory;
      bool const is_answered = bootstrap::detail::receive_verdict(fd.get(), say, memory) == collx::status::ok;
      _exit(is_answered && memory ? 43 : 44);
    }
    int how = -1;
    REQUIRE(waitpid(guest, &how, 0) == guest);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
  };
  CHECK(as(other_user) == 44);
  // Nor does a rank take what is listened at there.
  pid_t const rank = fork();
  if (rank == 0) {
    if (setuid(other_user) != 0) _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // setuid() clears it
    _exit(holds(refusal(name, 1, 60'000'000), "another user (54322) listens there") ? 42 : 3);
  }
  int how = -1;
  CHECK(waitpid(rank, &how, 0) == rank);
  CHECK((WIFEXITED(how) && WEXITSTATUS(how) == 42));
  CHECK(as(own_user) == 43);
  CHECK(waitpid(zero, &how, 0) == zero);
  CHECK((WIFEXITED(how) && WEXITSTATUS(how) == 42));
}

TEST_CASE("rendezvous: memory of which nobody says whose it is is not taken") {
  // What is no socket has nobody at its other end.
  CHECK_THROWS_WITH_AS(bootstrap::detail::require_own_user(-1, "meet", 1, 2),
                       doctest::Contains("does not say which user listens"), collx::error);
}

TEST_CASE("rendezvous: a path that is closed to this user is neither waited for nor taken") {
  folder const place;
  std::string const path = place.at("meet");
  REQUIRE(chmod(place.path().c_str(), 0777) == 0);  // a rank 0 of any user could remove what is there
  bootstrap::detail::host const zero(path.c_str(), 2, collx::now_us());
  REQUIRE(chmod(path.c_str(), 0) == 0);  // to all but root, so also to who runs this
  pid_t const closed_out = fork();
  if (closed_out == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (geteuid() == 0 && setuid(other_user) != 0) _exit(1);
    std::string const asked = refusal(path, 1, 200'000);
    if (!holds(asked, "rank 1 of 2: another user's socket is there, or its folder is closed")) _exit(2);
    std::string const listened = refusal(path, 0, 200'000);
    _exit(holds(listened, "the path cannot be bound") && access(path.c_str(), F_OK) == 0 ? 42 : 3);
  }
  int how = -1;
  REQUIRE(waitpid(closed_out, &how, 0) == closed_out);
  REQUIRE(WIFEXITED(how));
  if (WEXITSTATUS(how) == 1) MESSAGE("SKIPPED: root cannot become another user here");
  else CHECK(WEXITSTATUS(how) == 42);
}

TEST_CASE("rendezvous: who waits in vain is told what to do about the kind of place that it is") {
  folder const here;
  std::string const path = here.at("meet"), name = "@collx_test_nobody_" + std::to_string(getpid());
  for (rank_t const rank : {0, 1}) {
    CAPTURE(rank);
    std::string const by_path = refusal(path, rank, 1000), by_name = refusal(name, rank, 1000);
    CHECK_MESSAGE(holds(by_path, "with the same COLLX_RENDEZVOUS, or raise COLLX_TIMEOUT_US"), by_path);
    CHECK_MESSAGE(holds(by_name, "by one launcher; where they are in containers"), by_name);
    CHECK_MESSAGE(holds(by_name, "set COLLX_RENDEZVOUS to a path that they share"), by_name);
  }
}

TEST_CASE("rendezvous: a path that cannot be made says why") {
  folder const here;
  std::string const nowhere = refusal(here.at("no_folder/meet"), 0, 100'000);
  CHECK_MESSAGE(holds(nowhere, "the path cannot be bound: No such file or directory; give"), nowhere);
  std::string const there = refusal(here.path(), 0, 100'000);
  CHECK_MESSAGE(holds(there, "the path cannot be bound: Address already in use; give"), there);
}

TEST_CASE("rendezvous: a rank that has no room for the descriptor says so, not that its number is taken") {
  folder const here;
  std::string const path = here.at("meet");
  pid_t const zero = fork();
  if (zero == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(refusal(path, 0, 100'000'000).empty() ? 42 : 2);
  }
  std::string said;
  {
    without_descriptors const limit(1);  // for the socket to ask with
    said = refusal(path, 1, 100'000'000);
  }
  CHECK_MESSAGE(holds(said, "rank 1 of 2: this process has no room for the descriptor"), said);
  int how = -1;
  CHECK(waitpid(zero, &how, 0) == zero);
  CHECK((WIFEXITED(how) && WEXITSTATUS(how) == 42));
}

TEST_CASE("rendezvous: a rank 0 that has no descriptor for who comes says so, and not that nobody came") {
  folder const here;
  std::string const path = here.at("meet");
  bootstrap::detail::host zero(path.c_str(), 2, collx::now_us() + 2'000'000);
  sockaddr_un const where = bootstrap::detail::address_of(path.c_str());
  collx::net::owned_fd const one(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(connect(one.get(), reinterpret_cast<sockaddr const*>(&where), sizeof where) == 0);
  std::string said;
  try {
    without_descriptors const none;
    zero.serve(-1);
  } catch (collx::error const& refused) {
    said = refused.what();
    CHECK(refused.code() == collx::status::system_failure);
  }
  CHECK_MESSAGE(holds(said, "rank 0 of 2: a rank that comes cannot be let in: Too many open files; raise"),
                said);
}

TEST_CASE("rendezvous: a queue before a rank 0 that does not answer is left at the deadline") {
  folder const place;
  std::string const path = place.at("meet");
  sockaddr_un const where = bootstrap::detail::address_of(path.c_str());
  auto const* const at = reinterpret_cast<sockaddr const*>(&where);
  std::vector<collx::net::owned_fd> held;
  auto const one_more = [&] {
    held.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    return held.back().get();
  };
  int const zero = one_more();
  REQUIRE(bind(zero, at, sizeof where) == 0);
  REQUIRE(listen(zero, 1) == 0);
  while (connect(one_more(), at, sizeof where) == 0) {
  }
  REQUIRE(errno == EAGAIN);
  std::string const waited = refusal(path, 1, 200'000);
  CHECK_MESSAGE(holds(waited, "rank 1 of 2: rank 0 does not answer"), waited);
  // To another rank 0 the path is in use, and not left behind.
  std::string const taken = refusal(path, 0, 200'000);
  CHECK_MESSAGE(holds(taken, "the path cannot be bound: Address already in use; give"), taken);
  CHECK(access(path.c_str(), F_OK) == 0);
}
