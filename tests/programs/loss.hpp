// SPDX-License-Identifier: Apache-2.0
// Random programs in which a rank is lost: at one of its sends in whatever group, with a message read and not
// acknowledged, or between two calls. The others end, long before their deadline, with an error that says in
// which call, and who was lost; what was done before is right.
#pragma once

#include <csignal>
#include <cstdlib>

#include "collx/transport/faulty.hpp"
#include "programs/program.hpp"
#include "shared_with_forks.hpp"

namespace programs {

inline std::uint64_t const loss_deadline_us = seeds::from_environment("COLLX_TIMEOUT_US", 60'000'000);

// Who is lost in the program of a seed, and when.
struct loss {
  explicit loss(std::uint64_t seed) : world(seed) {
    replayable_random random(mixed(seed, 77));
    if (world.size == 1) world.size = 2;
    world.chosen.timeout_us = loss_deadline_us;
    victim = static_cast<rank_t>(random.below(static_cast<std::uint32_t>(world.size)));
    if (one_in(random, 3)) {
      at_step = static_cast<int>(random.below(static_cast<std::uint32_t>(world.steps)));
    } else {
      std::uint64_t const when = 1 + random.below(1u << random.below(8));
      (one_in(random, 2) ? in_group.stop_at_consume : in_group.stop_at_send) = when;
    }
  }
  world_of world;
  rank_t victim;
  int at_step = -1;
  collx::transport::fault_plan in_group{.kill_process = true};
};

// What is wrong with an error that is to say that the victim is gone; empty: nothing. `peer`: of the world.
inline std::string fault_of(collx::failure_report const& report, rank_t peer, rank_t victim) {
  if (report.code != status::aborted && report.code != status::peer_lost) return "not because a rank is gone";
  if (report.collective == nullptr || *report.collective == 0) return "does not say in which call";
  if (report.peer == collx::no_rank) return "names no peer";
  if (peer == victim) return {};
  return "names rank " + std::to_string(peer) + " of the world, and not the one that is gone";
}

// One rank of it, in a process of its own. `joined` is shared by all: who is lost before everybody is there
// is another matter.
template <class Transport>
int lose_or_be_told(loss const& how, std::uint64_t seed, arrivals& joined,
                    collx::communicator<Transport>& comm) {
  joined.come();
  joined.wait_for(how.world.size);
  meddling<collx::communicator<Transport>> meddles;
  if (comm.rank() == how.victim)
    meddles.joined = [&](auto& group) { group.engine().endpoint().inject(how.in_group); };
  std::uint64_t began_us = 0;  // the step
  meddles.at_step = [&](int step) {
    began_us = collx::now_us();
    if (comm.rank() == how.victim && step == how.at_step) std::raise(SIGKILL);
  };
  program<Transport> mine(seed, comm, meddles);
  try {
    while (!mine.resume()) continue;
    return 0;
  } catch (collx::error const& told) {
    std::string wrong = fault_of(told.report(), mine.world_rank_in(told.report()), how.victim);
    if (wrong.empty() && collx::now_us() - began_us > loss_deadline_us / 2) wrong = "late";
    if (wrong.empty()) return 0;
    (void)mine.give_up(std::runtime_error("rank " + std::to_string(how.victim) + " was lost, " + wrong +
                                          ": " + "(" + told.what() + ")"));
  } catch (std::exception const& wrong) {
    (void)mine.give_up(wrong);
  }
  return 1;
}

// `run(loss, rank_main)` runs ranks as processes, and returns how they ended. `lost` counts those that were
// killed; some programs end before.
template <class Run>
std::string survives(std::uint64_t seed, int& lost, Run const& run) {
  loss const how(seed);
  shared_with_forks<arrivals> joined;
  auto const codes = run(how, [&](auto& comm) { return lose_or_be_told(how, seed, *joined, comm); });
  for (std::size_t r = 0; r < codes.size(); ++r) {
    bool const may_be_killed = static_cast<rank_t>(r) == how.victim && codes[r] == 128 + SIGKILL;
    lost += may_be_killed;
    if (codes[r] != 0 && !may_be_killed)
      return "rank " + std::to_string(r) + " ended with " + std::to_string(codes[r]);
  }
  return {};
}

// The same for so many seeds of a test.
template <class Run>
void survive_seeds(std::uint64_t count, char const* test, Run const& run) {
  (void)oracle::reference::get();  // once, and not in every process
  int lost = 0;
  seeds::for_each_seed(count, test, [&](std::uint64_t seed) { return survives(seed, lost, run); });
  MESSAGE("ranks that were killed: " << lost);
  // One seed alone, or some that somebody has chosen, may be of programs that end before.
  bool const is_chosen = std::getenv("COLLX_SEED") != nullptr || std::getenv("COLLX_SEEDS") != nullptr ||
                         std::getenv("COLLX_STEPS") != nullptr;
  CHECK((lost > 0 || is_chosen));
}

}  // namespace programs
