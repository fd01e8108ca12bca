// SPDX-License-Identifier: Apache-2.0
// start_up_tcp [RANKS_MAX [ROUNDS]]: how long forked processes of this host take to meet over the loopback
// interface, from the moment they are all let loose; what processor time that takes, exit included, which
// other work on the machine changes little; how many messages the busiest handles, and how many connections
// it opens and accepts. For 8, 16, ... RANKS_MAX ranks.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "collx/bootstrap/network.hpp"
#include "perf/method.h"

namespace {

namespace bootstrap = collx::bootstrap;
using collx::rank_t;

// What a rank tells the parent, in memory that both see.
struct outcome {
  double met_us;
  std::uint64_t messages, accepted;
  std::uint32_t dialled;
};

// Waits until the parent closes its end of the pipe: forking takes longer than meeting.
[[noreturn]] void live(rank_t rank, rank_t size, int starts, bootstrap::network_settings const& chosen,
                       outcome& mine) {
  char never;
  while (read(starts, &never, 1) < 0) {
  }
  bootstrap::launch me;
  me.rank = rank;
  me.size = size;
  try {
    auto const all = bootstrap::meet_over_network(me, chosen, collx::net::secret());
    mine = {method_now_us(), all.messages, all.accepted, all.dialled};
    _exit(0);
  } catch (std::exception const& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    _exit(1);
  }
}

struct figures {
  double ms = 0;            // until the last rank has met
  double processor_ms = 0;  // of each rank
  // Of rank 0, and of the busiest of the others.
  std::uint64_t messages_zero = 0, messages_other = 0;
  std::uint32_t dialled_max = 0;
  std::uint64_t accepted_zero = 0, accepted_other = 0;
  bool well = true;
};

// Of all children that have been waited for.
double processor_ms_of_children() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  auto const ms = [](timeval const& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

figures meet(rank_t size, outcome* outcomes) {
  std::fill_n(outcomes, size, outcome{});  // a rank that fails says nothing
  auto const chosen = bootstrap::network_settings::from_environment();
  std::vector<pid_t> ranks;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {.well = false};
  for (rank_t r = 0; r < size; ++r) {
    pid_t const child = fork();
    if (child == 0) {
      close(ends[1]);
      live(r, size, ends[0], chosen, outcomes[r]);
    }
    ranks.push_back(child);
  }
  figures now{};
  double const used_ms = processor_ms_of_children(), began_us = method_now_us();
  close(ends[1]);
  for (pid_t const each : ranks) {
    int how = 0;
    now.well = waitpid(each, &how, 0) == each && how == 0 && now.well;
  }
  close(ends[0]);
  now.processor_ms = (processor_ms_of_children() - used_ms) / size;
  for (rank_t r = 0; r < size; ++r) {
    outcome const& its = outcomes[r];
    now.ms = std::fmax(now.ms, (its.met_us - began_us) / 1e3);
    if (r == 0) {
      now.messages_zero = its.messages, now.accepted_zero = its.accepted;
    } else {
      now.messages_other = std::max(now.messages_other, its.messages);
      now.accepted_other = std::max(now.accepted_other, its.accepted);
    }
    if (its.dialled > now.dialled_max) now.dialled_max = its.dialled;
  }
  return now;
}

double median(std::vector<double> values) {
  std::qsort(values.data(), values.size(), sizeof(double), method_compare_doubles);
  return method_percentile(values.data(), static_cast<int>(values.size()), 0.5);
}

}  // namespace

int main(int argc, char** argv) {
  int const ranks_max = argc > 1 ? std::atoi(argv[1]) : 512, rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  if (ranks_max < 2 || ranks_max > collx::transport::size_max || rounds < 1) {
    std::fprintf(stderr, "start_up_tcp [RANKS_MAX [ROUNDS]]\n");
    return 2;
  }
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  auto* const outcomes =
      static_cast<outcome*>(mmap(nullptr, sizeof(outcome) * static_cast<std::size_t>(ranks_max),
                                 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (outcomes == MAP_FAILED) return 1;
  std::printf("%5s %10s %10s %10s %13s %16s %13s %8s %16s %13s\n", "ranks", "median ms", "min", "max",
              "processor ms", "messages rank 0", "of any other", "dialled", "accepted rank 0",
              "by any other");
  bool well = true;
  double first_us = 0, last_us = 0;
  int first_ranks = 0, last_ranks = 0;
  for (int ranks = ranks_max < 8 ? ranks_max : 8; ranks <= ranks_max; ranks *= 2) {
    std::vector<double> met, used;
    figures last{};
    bool all_met = true;  // in every round
    for (int i = 0; i < rounds; ++i) {
      // A port of its own for each round, from below those that the system hands out.
      setenv("MASTER_PORT", std::to_string(20000 + (getpid() + 31 * i + ranks) % 10000).c_str(), 1);
      last = meet(ranks, outcomes);
      met.push_back(last.ms);
      used.push_back(last.processor_ms);
      all_met = all_met && last.well;
    }
    double const ms = median(met);
    auto const number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
    std::printf("%5d %10.1f %10.1f %10.1f %13.2f %16llu %13llu %8u %16llu %13llu%s\n", ranks, ms,
                *std::min_element(met.begin(), met.end()), *std::max_element(met.begin(), met.end()),
                median(used), number(last.messages_zero), number(last.messages_other), last.dialled_max,
                number(last.accepted_zero), number(last.accepted_other), all_met ? "" : "  FAILED");
    well = well && all_met;
    if (first_ranks == 0) first_us = ms * 1e3, first_ranks = ranks;
    last_us = ms * 1e3, last_ranks = ranks;
  }
  if (last_ranks > first_ranks)
    std::printf("slope: %.0f us for each further rank\n", (last_us - first_us) / (last_ranks - first_ranks));
  return well ? 0 : 1;
}
