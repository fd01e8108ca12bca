// SPDX-License-Identifier: Apache-2.0
// start_up [RANKS [ROUNDS [COMMAND...]]]: how long it takes until so many processes of this host are ranks,
// have met in a barrier, and are gone; and how long COMMAND takes, the same program of another library.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "collx/bootstrap/connect.hpp"
#include "collx/bootstrap/processes.hpp"
#include "collx/collective/barrier.hpp"
#include "perf/method.h"

namespace {

int meet_and_leave(collx::communicator<collx::transport::shm>& world) {
  collx::barrier(world);
  return 0;
}

// Runs the program at argv[0] and returns its process; `rank` < 0: as it is.
pid_t start(char* const* argv, int rank) {
  pid_t const child = fork();
  if (child != 0) return child;
  if (rank >= 0) setenv("RANK", std::to_string(rank).c_str(), 1);
  execvp(argv[0], argv);
  std::perror(argv[0]);
  _exit(127);
}

bool all_end_well(std::vector<pid_t> const& processes) {
  bool well = true;
  for (pid_t const each : processes) {
    int how = 0;
    well = waitpid(each, &how, 0) == each && how == 0 && well;
  }
  return well;
}

bool by_fork(int ranks) {
  bool well = true;
  for (int const code : collx::bootstrap::on_processes(ranks, meet_and_leave)) well = well && code == 0;
  return well;
}

// As a launcher does it: each rank is a program that finds the others by its environment.
bool by_connect(int ranks) {
  char own[] = "/proc/self/exe";
  char* const argv[] = {own, nullptr};
  setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
  setenv("COLLX_RENDEZVOUS", ("/tmp/collx_start_up_" + std::to_string(getpid())).c_str(), 1);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) processes.push_back(start(argv, rank));
  unsetenv("WORLD_SIZE");
  return all_end_well(processes);
}

template <class Start>
bool time(char const* what, int ranks, int rounds, Start const& start) {
  std::vector<double> ms;
  bool well = true;
  for (int round = 0; round < rounds; ++round) {
    double const began_us = method_now_us();
    well = start() && well;
    ms.push_back((method_now_us() - began_us) / 1e3);
  }
  std::qsort(ms.data(), ms.size(), sizeof(double), method_compare_doubles);
  std::printf("%-16s %4d ranks  median %8.1f ms  min %8.1f  max %8.1f%s\n", what, ranks,
              method_percentile(ms.data(), rounds, 0.5), ms.front(), ms.back(), well ? "" : "  FAILED");
  return well;
}

}  // namespace

int main(int argc, char** argv) {
  if (std::getenv("RANK") != nullptr) {
    auto world = collx::connect<collx::transport::shm>();
    return meet_and_leave(world);
  }
  int const ranks = argc > 1 ? std::atoi(argv[1]) : 64, rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  if (ranks < 1 || ranks > collx::transport::size_max || rounds < 1) {
    std::fprintf(stderr, "start_up [RANKS [ROUNDS [COMMAND...]]]\n");
    return 2;
  }
  bool well = time("collx, forked", ranks, rounds, [&] { return by_fork(ranks); });
  well = time("collx, connect()", ranks, rounds, [&] { return by_connect(ranks); }) && well;
  if (argc > 3)
    well = time(argv[3], ranks, rounds, [&] { return all_end_well({start(argv + 3, -1)}); }) && well;
  return well ? 0 : 1;
}
