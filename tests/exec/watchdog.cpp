// SPDX-License-Identifier: Apache-2.0
// The watchdog of the tests (tests/watchdog.hpp): ranks that hang, threads and processes, are ended before
// ctest ends the test, and each says where it stands: collective, number, step, and whom it waits for.
// ctest: LABELS waits

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collx/algo/ring.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/barrier.hpp"
#include "shared_with_forks.hpp"
#include "watched.hpp"

namespace {

constexpr collx::rank_t size = 4, missing = 2;

// What the ranks of one process, or of several, tell each other.
struct stage {
  arrivals begun;
  std::atomic<bool> hangs{false};
};

// Whether a rank that has begun its last call waits in it, asleep: it is made to say so again.
template <class Communicator>
void see_it_sleep(Communicator& comm, collx::rank_t rank) {
  auto& bell = comm.world().bell(rank);
  bell.asleep.store(0);
  bell.ring();
  while (bell.asleep.load() == 0) sched_yield();
}

// Rank `missing` does not come to collective number 3; the deadline of the others is far away.
template <class Communicator>
void hang(Communicator& comm, stage& s) {
  comm.timeout_us(3'600'000'000);
  std::vector<int> values(1000, 1);
  for (int i = 0; i < 3; ++i) collx::all_reduce(comm, values);
  if (comm.rank() == missing) {
    s.begun.wait_for(size - 1);
    for (collx::rank_t const waiting : {0, 1}) see_it_sleep(comm, waiting);
    s.hangs = true;
    for (;;) pause();
  }
  if (comm.rank() != 3) {
    s.begun.come();
    collx::all_reduce<collx::algo::ring>(comm, values);
  }
  auto started = collx::start::all_reduce<collx::algo::ring>(comm, values);
  s.begun.come();
  for (;;) pause();
}

// A process that runs what hangs; with so little time before its limit, if that is how it is to end.
class hanging_process {
 public:
  template <class Hangs>
  explicit hanging_process(Hangs const& hangs, int limit_s = 0) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      dup2(ends[1], STDERR_FILENO);
      dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
      signal(SIGABRT, SIG_DFL);  // doctest's handler would report a crash of this test
      auto const gone = std::chrono::steady_clock::now() - test_began;
      auto const gone_s = std::chrono::duration_cast<std::chrono::seconds>(gone).count();
      if (limit_s != 0) setenv("COLLX_TEST_TIMEOUT_S", std::to_string(gone_s + limit_s).c_str(), 1);
      hangs();
      _exit(0);
    }
    close(ends[1]);
    text_ = ends[0];
  }

  // Waits for its end, which must be that of abort(); returns what it and its ranks have said.
  std::string said() {
    std::string all;
    char part[512];
    for (ssize_t got; (got = read(text_, part, sizeof part)) > 0;)
      all.append(part, static_cast<std::size_t>(got));
    close(text_);
    int how = 0;
    REQUIRE(waitpid(pid_, &how, 0) == pid_);
    CHECK(WIFSIGNALED(how));
    CHECK(WTERMSIG(how) == SIGABRT);
    return all;
  }

 private:
  pid_t pid_ = 0;
  int text_ = -1;
};

// What rank's line must hold; the others' lines must not count.
void check_line(std::string const& text, collx::rank_t rank, std::vector<std::string> const& parts) {
  std::string const begins = "rank " + std::to_string(rank) + ": ";
  std::size_t const at = text.find(begins);
  CAPTURE(text);
  CAPTURE(rank);
  REQUIRE(at != std::string::npos);
  std::string const line = text.substr(at, text.find('\n', at) - at);
  CAPTURE(line);
  for (std::string const& part : parts)
    CHECK_MESSAGE(line.find(part) != std::string::npos, "lacks: " << part);
}

void check_text(std::string const& text) {
  CHECK(text.find("watchdog: ranks have not ended") != std::string::npos);
  // In a ring, each waits for the one before it: rank 0 for rank 3, which has only started.
  check_line(text, 0, {"all_reduce<ring> #3 on rank 0", "aborted", "peer 3", "step ", " of 7"});
  check_line(text, 1, {"all_reduce<ring> #3 on rank 1", "aborted", "peer 0", "step ", " of 7"});
  check_line(text, missing, {"does not wait", "#3"});
  check_line(text, 3, {"all_reduce #3", "step ", " of 7", "waits for rank 2"});
}

}  // namespace

TEST_CASE("ranks that hang are ended, and say where they stand") {
  // All at once: they take seconds. A process whose rank another one's watchdog aborts ends by its
  // exception.
  shared_with_forks<stage> of_threads, of_processes;
  hanging_process threads([&] {
    hanging = &of_threads->hangs;
    watched::on_threads(size, [&](auto& comm) { hang(comm, *of_threads); });
  });
  hanging_process processes([&] {
    hanging = &of_processes->hangs;
    for (int const code : watched::on_processes(size, [&](auto& comm) { hang(comm, *of_processes); }))
      if (code == 0) _exit(0);
    abort();
  });
  check_text(threads.said());
  check_text(processes.said());
}

TEST_CASE("what hangs is ended before ctest ends it") {
  hanging_process by_watchdog(
      [] {
        watchdog const dog;
        for (;;) pause();
      },
      watchdog::spare_s + 1);
  hanging_process by_its_parent(
      [] {
        watched::limit_of_parent const limit;
        // unwatched: as if their watchdogs hung as well
        (void)collx::bootstrap::on_processes(2, [](auto&) {
          for (;;) pause();
        });
      },
      watchdog::spare_of_parent_s + 1);
  CHECK(by_watchdog.said().find("watchdog: ranks have not ended after 1 s") != std::string::npos);
  CHECK(by_its_parent.said().find("watchdog: processes that are ranks have not ended") != std::string::npos);
}

TEST_CASE("a watchdog is patient as long as ctest is, and no longer") {
  setenv("COLLX_TEST_TIMEOUT_S", "10000", 1);
  CHECK(time_left(watchdog::spare_s).count() > 9000);
  CHECK(time_left(watchdog::spare_s).count() <= 10000 - watchdog::spare_s);
  CHECK(time_left(watchdog::spare_of_parent_s) > time_left(watchdog::spare_s));
  setenv("COLLX_TEST_TIMEOUT_S", "1", 1);  // it is late already
  CHECK(time_left(watchdog::spare_s).count() == 1);
}
