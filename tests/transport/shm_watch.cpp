// SPDX-License-Identifier: Apache-2.0
// Who asks whether another process still runs, and has no descriptor left to ask with, must not take it for
// lost.
// thread sanitizer: no, each rank is a process of one thread
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <grp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>

#include <doctest/doctest.h>

#include "collx/collective/all_reduce.hpp"
#include "collx/transport/shared_memory/process.hpp"
#include "contained.hpp"
#include "transport/child.hpp"
#include "transport/without_descriptors.hpp"
#include "watched.hpp"

namespace {

namespace shared_memory = collx::transport::shared_memory;
using collx::status;
using shared_memory::process_watch;

// False: the kernel knows no such filters. For this process, from now on.
bool refuse_process_descriptors() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog const all{4, rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

}  // namespace

TEST_CASE("a process is lost when it has ended, and not sooner, however many descriptors there are") {
  for (int const descriptors : {0, 1, 2}) {
    CAPTURE(descriptors);
    child one;
    std::uint64_t const started = shared_memory::start_time(one.pid());
    CHECK(started != 0);
    CHECK(started != shared_memory::not_told);
    process_watch watch;
    {
      without_descriptors const but(descriptors);
      CHECK_FALSE(watch.ended(one.pid(), started));
      CHECK_FALSE(watch.ended(one.pid(), started));
      // One that is opened in vain is given back.
      if (descriptors == 1) {
        int const spare = dup(0);
        CHECK(spare >= 0);
        close(spare);
      }
    }
    CHECK_FALSE(watch.ended(one.pid(), started));
    one.kill_only();
    CHECK(watch.ended(one.pid(), started));
    one.end();
    CHECK(watch.ended(one.pid(), started));
  }
}

TEST_CASE("a process that is gone when it is first asked after is lost, also without descriptors") {
  for (bool const none : {false, true}) {
    child one;
    std::uint64_t const started = shared_memory::start_time(one.pid());
    int const pid = one.pid();
    one.end();
    process_watch watch;
    std::optional<without_descriptors> now;
    if (none) now.emplace();
    CHECK(watch.ended(pid, started));
  }
}

// In a child, since nothing takes such a filter away again.
TEST_CASE("where a sandbox refuses descriptors of processes, one that is gone is lost all the same") {
  child one;
  std::uint64_t const started = shared_memory::start_time(one.pid());
  pid_t const judge = fork();
  REQUIRE(judge >= 0);
  if (judge == 0) {
    if (!refuse_process_descriptors()) _exit(1);
    process_watch watch;
    if (watch.ended(one.pid(), started)) _exit(2);
    if (!watch.ended(one.pid(), started + 1)) _exit(3);  // the number is another one's by now
    _exit(0);
  }
  int how = -1;
  CHECK(waitpid(judge, &how, 0) == judge);
  CHECK(how == 0);
}

TEST_CASE("a process with the number of another one is not taken for it") {
  child one;
  process_watch watch;
  CHECK(watch.ended(one.pid(), shared_memory::start_time(one.pid()) + 1));
  // One of which its start was never told is known by its number alone.
  process_watch other;
  CHECK_FALSE(other.ended(one.pid(), shared_memory::not_told));
}

TEST_CASE("a process that /proc hides from other users is watched all the same") {
  child one;
  std::uint64_t const started = shared_memory::start_time(one.pid());
  int asked[2], ended[2];
  REQUIRE((pipe(asked) == 0 && pipe(ended) == 0));
  contained judge(CLONE_NEWNS, [&] {
    char word = 0;
    close(ended[1]);  // so that it ends with this test
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return contained::no_right;
    if (mount("proc", "/proc", "proc", 0, "hidepid=2") != 0) return contained::no_right;
    gid_t const nobody = 65534;  // group 0 may see all
    if (setgroups(0, nullptr) != 0 || setresgid(nobody, nobody, nobody) != 0) return contained::no_right;
    if (setresuid(nobody, nobody, nobody) != 0) return contained::no_right;
    if (shared_memory::start_time(one.pid()) != 0) return 1;  // not hidden: this shows nothing
    process_watch watch;
    if (watch.ended(one.pid(), started)) return 2;
    if (write(asked[1], &word, 1) != 1 || read(ended[0], &word, 1) != 1) return 3;
    return watch.ended(one.pid(), started) ? 0 : 4;
  });
  char word = 0;
  close(asked[1]);
  bool const has_asked = read(asked[0], &word, 1) == 1;
  one.kill_only();
  if (has_asked) CHECK(write(ended[1], &word, 1) == 1);
  check_contained(judge.ended());
  for (int const fd : {asked[0], ended[0], ended[1]}) close(fd);
}

TEST_CASE("shm: without descriptors a rank waits for a late peer until its deadline, and does not lose it") {
  for (int const descriptors : {0, 1}) {
    int told[2];
    REQUIRE(pipe(told) == 0);
    auto const codes = watched::on_processes(2, [&](collx::communicator<collx::transport::shm>& comm) {
      int value = 1;
      char word = 0;
      if (comm.rank() == 0) return read(told[0], &word, 1) == 1 ? 0 : 1;
      comm.timeout_us(300'000);
      status outcome = status::ok;
      {
        without_descriptors const none(descriptors);
        outcome = collx::try_all_reduce(comm, std::span(&value, 1), collx::sum);
      }
      if (write(told[1], &word, 1) != 1) return 2;
      return outcome == status::timeout ? 0 : 3;
    });
    for (int const code : codes) CHECK(code == 0);
    close(told[0]);
    close(told[1]);
  }
}
