// SPDX-License-Identifier: Apache-2.0
// on_threads where memory ends while ranks join: no rank begins, and all is given back that had been taken.
// sanitizers: no, it replaces operator new itself
// compiled: apart, it replaces operator new
#include "collx/bootstrap/threads.hpp"

#include <atomic>
#include <cstdio>
#include <optional>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collx/collective/barrier.hpp"
#include "scarce_memory.hpp"

namespace {

using collx::rank_t;

// So large that one block more stands out among what else a process maps. It is not touched.
collx::transport::settings const large{.staging_bytes = std::size_t{16} << 20};
constexpr rank_t ranks = 3;

std::size_t block_bytes() {
  return collx::transport::mapped::block_layout{ranks, large.staging_bytes}.block_bytes();
}

// Of the address space of this process.
std::size_t mapped_bytes() {
  unsigned long pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%lu", &pages) != 1) _exit(10);
  std::fclose(file);
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// What became of on_threads; no code: std::bad_alloc.
struct outcome {
  int begun = 0;
  bool refused = false;
  std::optional<collx::status> code;
};

outcome run() {
  std::atomic<int> begun{0};
  outcome how;
  auto const rank_main = [&](auto& comm) {
    ++begun;
    collx::barrier(comm);
  };
  try {
    collx::bootstrap::on_threads(ranks, rank_main, large);  // unwatched: it is what is tested
  } catch (collx::error const& refused) {
    how.refused = true;
    how.code = refused.code();
  } catch (std::bad_alloc const&) {
    how.refused = true;
  }
  how.begun = begun;
  return how;
}

}  // namespace

TEST_CASE("threads: whichever allocation fails while ranks join, what had been taken is given back") {
  (void)run();  // what libraries take once, and stacks of threads, which are kept
  std::size_t const mapped = mapped_bytes();
  int failures = 0;
  for (bool enough = false; !enough; ++failures) {
    REQUIRE(failures < 1000);
    outcome how;
    long const taken = scarce_memory::in_use;
    {
      scarce_memory::allowance const few(failures);
      how = run();
    }
    long const left = scarce_memory::in_use - taken;
    enough = !how.refused;
    CHECK(how.begun == (enough ? ranks : 0));
    CHECK_MESSAGE(left == 0, "after " << failures << " allocations");
    CHECK_MESSAGE(mapped_bytes() < mapped + block_bytes(), "after " << failures << " allocations");
  }
  CHECK(failures > 3 * ranks);
}

// In a child, since nothing raises the limit again.
TEST_CASE("threads: where there is no room for all blocks, those that were mapped are given back") {
  pid_t const child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::size_t const before = mapped_bytes();
    long const taken = scarce_memory::in_use;
    rlim_t const most = before + 2 * block_bytes() + block_bytes() / 2;
    rlimit const limit{most, most};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(11);
    outcome const how = run();
    if (how.begun != 0 || how.code != collx::status::out_of_memory) _exit(12);
    if (mapped_bytes() >= before + block_bytes()) _exit(13);
    _exit(scarce_memory::in_use == taken ? 42 : 14);
  }
  int how = 0;
  REQUIRE(waitpid(child, &how, 0) == child);
  CHECK_MESSAGE((WIFEXITED(how) && WEXITSTATUS(how) == 42), "it ended with " << how);
}
