// SPDX-License-Identifier: Apache-2.0
// on_threads where the system refuses threads: an error that says so, and no rank that has begun without the
// others.
// sanitizers: no, they take address space of their own for each thread
#include "collx/bootstrap/threads.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>

#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collx/collective/all_reduce.hpp"

namespace {

// Of the address space of this process.
rlim_t mapped_bytes() {
  unsigned long pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%lu", &pages) != 1) _exit(10);
  std::fclose(file);
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// Leaves this process room for a few threads.
void allow_few_threads() {
  std::size_t const stack_bytes = std::size_t{1} << 30;
  pthread_attr_t large;
  if (pthread_attr_init(&large) != 0 || pthread_attr_setstacksize(&large, stack_bytes) != 0 ||
      pthread_setattr_default_np(&large) != 0)
    _exit(11);
  rlim_t const most = mapped_bytes() + 3 * stack_bytes + stack_bytes / 2;
  rlimit const limit{most, most};
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(12);
}

}  // namespace

// In a child, since nothing raises the limit again.
TEST_CASE("threads: where the system refuses some, no rank runs, and the error says what to do") {
  pid_t const child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    allow_few_threads();
    std::atomic<int> begun{0};
    auto const rank_main = [&](auto& comm) {
      ++begun;
      int one = 1;
      collx::all_reduce(comm, std::span(&one, 1));
      if (one != comm.size()) _exit(13);
    };
    try {
      collx::bootstrap::on_threads(8, rank_main, {.staging_bytes = 64 * 1024});  // unwatched: it is a thread
      _exit(14);
    } catch (collx::error const& refused) {
      if (refused.code() != collx::status::system_failure) _exit(15);
      for (char const* part : {"a thread for rank", " of 8: ", "start fewer ranks", "ulimit -u"})
        if (std::strstr(refused.what(), part) == nullptr) _exit(16);
    }
    if (begun != 0) _exit(17);
    // With what is left of the address space fewer of them run as ever.
    collx::bootstrap::on_threads(2, rank_main, {.staging_bytes = 64 * 1024});  // unwatched: the same
    _exit(begun == 2 ? 42 : 18);
  }
  int how = 0;
  REQUIRE(waitpid(child, &how, 0) == child);
  CHECK_MESSAGE((WIFEXITED(how) && WEXITSTATUS(how) == 42), "it ended with " << how);
}
