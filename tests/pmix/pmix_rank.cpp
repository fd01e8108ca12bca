// SPDX-License-Identifier: Apache-2.0
// pmix_rank tcp|composite: one rank of those that a launcher with PMIx has started. Nothing says where rank 0
// is but the launcher. twice: two meetings, one after the other. pmix_rank places: what a launcher may say of
// sizes and ranks, without one. absent: rank 2 never comes. stopped: the launcher does not answer.
// stopped_later: nor when it is asked for the others.
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include "collx/bootstrap/pmix.hpp"
#include "collx/collx.hpp"
#include "watched.hpp"

namespace {

using tcp = collx::transport::tcp;
using shm_and_tcp = collx::transport::composite<collx::transport::shm, tcp>;

template <class Transport>
void run() {
  auto world = collx::connect_by_pmix<Transport>();
  watched::rank_of_process const here(world);
  std::vector<int> values(1000, world.rank() + 1);
  collx::all_reduce(world, std::span(values), collx::sum);
  for (int const value : values)
    if (value != world.size() * (world.size() + 1) / 2) throw std::runtime_error("a sum is wrong");
  if (world.rank() == 0) std::printf("%d ranks: all right\n", world.size());
}

// Meetings of one process, as of one that uses MPI, or that makes another world after one has failed.
template <class Transport>
void run_twice() {
  collx::bootstrap::pmix_use const known(collx::now_us() + 60'000'000);
  run<Transport>();
  run<Transport>();
}

// Tells the launcher who it is, and no more; is killed with the others.
[[noreturn]] void stay_away() {
  collx::bootstrap::pmix_use const known(collx::now_us() + 60'000'000);
  for (;;) pause();
}

// Until the other ranks have seen that it is; the one that has stopped it wakes it again.
void stop_launcher() {
  pid_t const launcher = getppid();
  kill(launcher, SIGSTOP);
  try {
    run<tcp>();
  } catch (...) {
    kill(launcher, SIGCONT);
    throw;
  }
}

// While rank 0 waits for rank 1, which is there, and stops the launcher.
[[noreturn]] void stop_launcher_of_rank_0() {
  collx::bootstrap::pmix_use const known(collx::now_us() + 60'000'000);
  (void)known.get("collx.rank0.1", 0, collx::bootstrap::pmix_wait::for_data);
  kill(getppid(), SIGSTOP);
  for (;;) pause();
}
void wait_for_stopped_launcher() {
  try {
    std::uint64_t const until_us = collx::now_us() + 8'000'000;  // rank 1 has to come before that
    collx::bootstrap::pmix_job(8'000'000).write("an address", until_us);
  } catch (...) {
    kill(getppid(), SIGCONT);
    throw;
  }
}

void check_places() {
  struct place {
    std::int64_t size, rank;
    char const* names;  // what the error says; null: it is none
  };
  for (place const& each :
       {place{1, 0, nullptr}, place{4096, 4095, nullptr}, place{-1, 0, "PMIX_JOB_SIZE"},
        place{0, 0, "PMIX_JOB_SIZE"}, place{4097, 0, "PMIX_JOB_SIZE"}, place{4, 4, "rank of this process"},
        place{4, -1, "rank of this process"}, place{4, 0xffff'fffe, "rank of this process"}}) {
    char const* expected = each.names;
    try {
      collx::bootstrap::detail::require_place_in_job(each.size, each.rank);
    } catch (collx::error const& refused) {
      bool const right = expected != nullptr && refused.report().code == collx::status::bad_argument &&
                         std::strstr(refused.what(), expected) != nullptr;
      if (!right) throw;
      expected = nullptr;
    }
    if (expected != nullptr) throw std::runtime_error("a place that cannot be was not refused");
  }
  std::puts("places: all right");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 2 && std::strcmp(argv[1], "composite") == 0) run<shm_and_tcp>();
  else if (argc == 2 && std::strcmp(argv[1], "twice") == 0) run_twice<tcp>();
  else if (argc == 2 && std::strcmp(argv[1], "places") == 0) check_places();
  else if (argc == 2 && std::strcmp(argv[1], "absent") == 0 && std::getenv("PMIX_RANK")[0] == '2')
    stay_away();
  else if (argc == 2 && std::strcmp(argv[1], "stopped") == 0) stop_launcher();
  else if (argc == 2 && std::strcmp(argv[1], "stopped_later") == 0 && std::getenv("PMIX_RANK")[0] == '1')
    stop_launcher_of_rank_0();
  else if (argc == 2 && std::strcmp(argv[1], "stopped_later") == 0) wait_for_stopped_launcher();
  else run<tcp>();
} catch (std::exception const& failure) {
  std::printf("error: %s\n", failure.what());
  return 1;
}
