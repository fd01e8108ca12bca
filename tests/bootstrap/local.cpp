// SPDX-License-Identifier: Apache-2.0
// on_threads and on_processes: sizes that are refused, ranks that throw, exit, or are killed, and
// worlds inside worlds.
#include "collx/bootstrap/local.hpp"

#include <atomic>
#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collective/all_reduce.hpp"
#include "collx/collective/barrier.hpp"
#include "require.hpp"
#include "shared_with_forks.hpp"
#include "watchdog.hpp"

namespace {

using collx::rank_t;
using collx::status;
using collx::bootstrap::on_processes;  // unwatched: these are what is tested
using collx::bootstrap::on_threads;    // unwatched

// The sum of rank + 1 over all ranks.
int sum_of_ranks(auto& comm) {
  std::vector<int> value{comm.rank() + 1};
  collx::all_reduce(comm, value);
  return value[0];
}

int triangular(rank_t n) { return n * (n + 1) / 2; }

// What this process does when a signal comes, until the end of the scope.
class on_signal {
 public:
  on_signal(int number, void (*handler)(int)) : number_(number), before_(signal(number, handler)) {}
  on_signal(on_signal const&) = delete;
  ~on_signal() { signal(number_, before_); }

 private:
  int number_;
  void (*before_)(int);
};

std::atomic<bool>* reaped = nullptr;
void reap_any(int) {
  int const as_it_was = errno;
  while (waitpid(-1, nullptr, WNOHANG) > 0) *reaped = true;
  errno = as_it_was;
}

template <class F>
std::string error_text(F const& f) {
  try {
    f();
  } catch (collx::error const& failure) {
    CHECK(failure.code() == status::bad_argument);
    return failure.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("no ranks, or absurdly many, are refused, and nothing is started") {
  for (rank_t const size : {0, -1, -1'000'000, 4097, 1'000'000'000}) {
    CAPTURE(size);
    auto const never = [](auto&) { FAIL("started"); };
    std::string const refused = ": the number of ranks must be at least 1 and at most 4096 (given " +
                                std::to_string(size) + ")";
    CHECK(error_text([&] { on_threads(size, never); }) == "collx: on_threads" + refused);
    CHECK(error_text([&] { (void)on_processes(size, never); }) == "collx: on_processes" + refused);
  }
}

TEST_CASE("every rank runs once, under its own number") {
  for (rank_t const size : {1, 2, 5, 9}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(size));
    on_threads(size, [&](auto& comm) {
      require(comm.size() == size, "size");
      ++runs[static_cast<std::size_t>(comm.rank())];
      require(sum_of_ranks(comm) == triangular(size), "sum");
    });
    for (auto const& each : runs) CHECK(each == 1);
    auto const codes = on_processes(size, [&](auto& comm) {
      require(comm.size() == size, "size");
      require(sum_of_ranks(comm) == triangular(size), "sum");
    });
    CHECK(codes.size() == static_cast<std::size_t>(size));
    for (int const code : codes) CHECK(code == 0);
  }
}

TEST_CASE("threads: the first exception ends the other ranks and is rethrown") {
  watchdog dog;
  std::atomic<int> aborted{0};
  try {
    on_threads(4, [&](auto& comm) {
      // Who is slow may learn of the end in the barrier still.
      status const met = collx::try_barrier(comm);
      if (comm.rank() == 2) throw std::runtime_error("rank 2 gives up");
      std::vector<int> values(10);
      aborted += met == status::aborted || collx::try_all_reduce(comm, values) == status::aborted;
    });
    FAIL("no exception");
  } catch (std::runtime_error const& failure) {
    CHECK(std::string(failure.what()) == "rank 2 gives up");
  }
  CHECK(aborted == 3);
}

TEST_CASE("threads: an exception that is no std::exception passes through as it is") {
  try {
    on_threads(2, [](auto& comm) {
      if (comm.rank() == 1) throw 42;
      (void)collx::try_barrier(comm);
    });
    FAIL("no exception");
  } catch (int value) {
    CHECK(value == 42);
  }
}

TEST_CASE("processes: exit codes tell exceptions, exits, signals and success apart") {
  // No collective before that: who throws aborts it for those that are not through yet.
  auto const codes = on_processes(6, [](auto& comm) {
    watchdog dog;
    switch (comm.rank()) {
      case 1: throw std::runtime_error("expected: rank 1 throws");
      case 2: _exit(7);
      case 3:
        kill(getpid(), SIGKILL);
        pause();
        break;
      case 4: throw 42;
      case 5:
        signal(SIGTERM, SIG_DFL);  // doctest's handler would report it
        kill(getpid(), SIGTERM);
        pause();  // it may be the watchdog's thread that hears of it
        break;
      default: break;
    }
  });
  CHECK(codes[0] == 0);
  CHECK(codes[1] == 1);
  CHECK(codes[2] == 7);
  CHECK(codes[3] == 128 + SIGKILL);
  CHECK(codes[4] == 1);
  CHECK(codes[5] == 128 + SIGTERM);
}

TEST_CASE("processes: whatever a rank returns that can become an int is its exit code") {
  auto const all_end_with = [](int code, auto const& rank_main) {
    for (int const each : on_processes(2, rank_main)) CHECK(each == code);
  };
  enum outcome : int { done, gave_up = 4 };
  struct convertible {
    operator int() const { return 5; }
  };
  all_end_with(3, [](auto&) { return 3; });
  all_end_with(3, [](auto&) { return 3L; });
  all_end_with(3, [](auto&) { return static_cast<unsigned char>(3); });
  all_end_with(gave_up, [](auto&) { return gave_up; });
  all_end_with(5, [](auto&) { return convertible{}; });
  int const three = 3;
  all_end_with(3, [&](auto&) -> int const& { return three; });
  all_end_with(0, [](auto&) {});
}

TEST_CASE("processes: how ranks end is told also where the program ignores its children") {
  on_signal const ignored(SIGCHLD, SIG_IGN);
  auto const codes = on_processes(3, [](auto& comm) {
    if (comm.rank() == 1) kill(getpid(), SIGKILL);
    if (comm.rank() == 2) _exit(7);
  });
  CHECK(codes[0] == 0);
  CHECK(codes[1] == 128 + SIGKILL);
  CHECK(codes[2] == 7);
  bool const as_it_was = signal(SIGCHLD, SIG_IGN) == SIG_IGN;
  CHECK(as_it_was);
}

TEST_CASE("processes: what is set meanwhile for the end of children stays") {
  static void (*const later)(int) = [](int) {};
  for (auto const before : {SIG_DFL, SIG_IGN}) {
    on_signal const first(SIGCHLD, before);
    on_signal const meanwhile(SIGUSR1, [](int) { signal(SIGCHLD, later); });
    (void)on_processes(2, [](auto&) { kill(getppid(), SIGUSR1); });
    CHECK((signal(SIGCHLD, before) == later));
  }
}

TEST_CASE("processes: where somebody else has waited for a rank, nobody says that it ended well") {
  shared_with_forks<std::atomic<bool>> gone;
  reaped = &*gone;
  on_signal const handled(SIGCHLD, &reap_any);
  try {
    (void)on_processes(2, [&](auto& comm) {
      if (comm.rank() == 1) kill(getpid(), SIGKILL);
      while (!*gone) sched_yield();  // so that this process waits for rank 0 meanwhile
    });
    FAIL("no error");
  } catch (collx::error const& failure) {
    CHECK(failure.code() == status::system_failure);
    CHECK(std::string(failure.what()).find("somebody else waited") != std::string::npos);
  }
}

TEST_CASE("processes: when one throws, the others end with an error instead of waiting") {
  auto const codes = on_processes(3, [](auto& comm) {
    watchdog dog;
    if (comm.rank() == 0) throw std::runtime_error("expected: rank 0 throws");
    std::vector<int> values(10);
    // Not a time-out.
    if (collx::try_all_reduce(comm, values) != status::aborted) _exit(9);
    if (comm.failure().reported_by != 0) _exit(10);
  });
  CHECK(codes[0] == 1);
  CHECK(codes[1] == 0);
  CHECK(codes[2] == 0);
}

TEST_CASE("worlds inside worlds: threads in threads, threads in processes, processes in processes") {
  {
    watchdog dog;  // gone before the fork: the thread sanitizer wants no other thread then
    on_threads(2, [](auto& outer) {
      on_threads(3, [](auto& inner) { require(sum_of_ranks(inner) == 6, "inner"); });
      require(sum_of_ranks(outer) == 3, "outer");
    });
  }
  auto const codes = on_processes(2, [](auto& outer) {
    on_threads(3, [](auto& inner) { require(sum_of_ranks(inner) == 6, "threads"); });
    for (int const code :
         on_processes(2, [](auto& inner) { require(sum_of_ranks(inner) == 3, "processes"); }))
      require(code == 0, "an inner process failed");
    require(sum_of_ranks(outer) == 3, "outer");
  });
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("worlds one after the other know nothing of each other, even after a failure") {
  for (int round = 0; round < 10; ++round) {
    CHECK_THROWS_AS(on_threads(2,
                               [](auto& comm) {
                                 if (comm.rank() == 0) throw std::runtime_error("expected");
                                 collx::barrier(comm);
                               }),
                    std::exception);
    on_threads(2, [](auto& comm) { require(sum_of_ranks(comm) == 3, "sum"); });
  }
}

TEST_CASE("settings reach every rank") {
  auto const check = [](auto& comm) {
    require(comm.timeout_us() == 123'456'789, "timeout");
    require(comm.engine().endpoint().staging_bytes() == 128 * 1024, "staging");
  };
  collx::transport::settings const chosen{.timeout_us = 123'456'789, .staging_bytes = 128 * 1024};
  on_threads(2, check, chosen);
  for (int const code : on_processes(2, check, chosen)) CHECK(code == 0);
}

TEST_CASE("memory for the ranks that cannot be had is refused once, with advice, before any is started") {
  try {
    (void)on_processes(16, [](auto&) {}, {.heap_bytes = std::size_t{1} << 44});
    FAIL("256 TiB of address space");
  } catch (collx::error const& failure) {
    CHECK(failure.code() == status::system_failure);
    CHECK(std::string(failure.what()).find("COLLX_HEAP_BYTES") != std::string::npos);
  }
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);  // no children
}
