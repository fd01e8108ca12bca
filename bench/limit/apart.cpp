// SPDX-License-Identifier: Apache-2.0
// processors_apart --ranks N: how long a cache line takes from one of N processors to the next, in ns, as
// bench/compare asks before and after every program. A virtual machine's processors are moved about: two of
// them may be threads of one core now and lie on two dies in ten seconds, which is a factor of three
// in the time of small messages, whoever sends them.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include <sys/mman.h>

#include "../plain/options.hpp"
#include "../plain/team.hpp"

namespace {

struct alignas(64) token {
  std::atomic<std::uint32_t> at = 0;
};

// Relaxed throughout: the line itself is what travels.
void await(plain::team const& ranks, token const& line, std::uint32_t turn) {
  constexpr std::uint32_t polls_before_doubt = 1 << 16;
  for (std::uint32_t polls = 1; line.at.load(std::memory_order_relaxed) != turn; ++polls)
    if (polls % polls_before_doubt == 0) ranks.require_all();
}

// `laps` times around all ranks; ns per step from one to the next.
double walk(plain::team& ranks, token& line, std::uint32_t laps) {
  auto const size = static_cast<std::uint32_t>(ranks.size());
  auto turn = line.at.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(ranks.rank());
  ranks.meet();
  double const begin_us = method_now_us();
  for (std::uint32_t lap = 0; lap < laps; ++lap, turn += size) {
    await(ranks, line, turn);
    line.at.store(turn + 1, std::memory_order_relaxed);
  }
  ranks.meet();
  return (method_now_us() - begin_us) * 1e3 / (static_cast<double>(laps) * size);
}

int run(int argc, char** argv) {
  constexpr int walks = 15;
  constexpr std::uint32_t laps = 1000;
  if (argc != 3 || std::string(argv[1]) != "--ranks") throw std::invalid_argument("usage: --ranks N");
  auto const wanted = static_cast<int>(plain::whole_number("--ranks", argv[2]));
  if (!perf::shall_pin("on", wanted) || wanted < 2)
    throw std::invalid_argument("--ranks wants 2 or more");
  plain::team ranks(wanted, true);
  void* const memory =
      mmap(nullptr, sizeof(token), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  token& line = *new (memory) token;
  return ranks.run([&](int rank) {
    double least_ns = walk(ranks, line, laps);
    for (int again = 1; again < walks; ++again) least_ns = std::min(least_ns, walk(ranks, line, laps));
    if (rank == 0) std::printf("%.1f\n", least_ns);
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "processors_apart: %s\n", problem.what());
    return 2;
  }
}
