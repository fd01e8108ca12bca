// SPDX-License-Identifier: Apache-2.0
// A test of transport::ucx: ucx_ranks SCENARIO RANKS starts so many processes. Ends with 0 if all was as it
// should be in each.
#include <cstdio>
#include <new>
#include <string_view>

#include <signal.h>

#include "scarce_memory.hpp"
#include "transport/matched_scenarios.hpp"
#include "transport/unable.hpp"
#include "ucx/start.hpp"

using collx::rank_t;
using collx::status;
using collx::transport::settings;
using collx::transport::ucx;
using namespace matched_scenarios;

static_assert(collx::transport::endpoint<ucx::endpoint>);
static_assert(collx::transport::endpoint<collx::transport::faulty<ucx>::endpoint>);
static_assert(!ucx::endpoint::is_mapped && ucx::endpoint::lane_count >= 3);

namespace {

// Settings that differ are found when ranks join, on all of them.
template <class Join>
void refused_staging(std::size_t bytes, Join const& join) {
  settings chosen = small_staging();
  chosen.staging_bytes = bytes;
  status how = status::ok;
  try {
    (void)join(chosen);
  } catch (collx::error const& failure) {
    how = failure.code();
  }
  require(how == status::bad_argument, "a size of staging that cannot be is not refused");
}

// What the environment asks for is refused, not left out; and the message says what to do.
template <class Join>
void refused(Join const& join, char const* variable, char const* value, std::string_view advice) {
  setenv(variable, value, 1);
  status how = status::ok;
  try {
    (void)join(settings::from_environment());
  } catch (collx::error const& failure) {
    how = failure.code();
    require(std::string_view(failure.what()).find(advice) != std::string_view::npos, "no advice");
  }
  require(how == status::bad_argument, variable);
  unsetenv(variable);
}

// Rank 1 has no memory for its part, and lives on: it gives back what it had taken, and the others are told.
template <class Join>
void no_memory_to_join(collx::communicator<ucx>& world, Join const& join) {
  settings chosen = settings::from_environment();
  chosen.timeout_us = long_us;
  bool heard = false;
  if (world.rank() == 1) {
    bool refused = false;
    long const taken = scarce_memory::in_use;
    try {
      (void)join.template as<unable<ucx>>(chosen);
    } catch (std::bad_alloc const&) {
      refused = true;
    }
    require(refused, "it has joined");
    require(scarce_memory::in_use == taken, "not all is given back");
  } else {
    collx::communicator<ucx> one = join(chosen);
    std::uint64_t const begun_us = collx::now_us();
    status const how = collx::try_barrier(one);
    require(how == status::aborted || how == status::peer_lost, "a rank that has not joined is not noticed");
    require(collx::now_us() - begun_us < long_us / 2, "it is noticed by the deadline only");
    heard = how == status::aborted && one.failure().reported_by == 1;
  }
  require_heard(world, heard, "nobody heard that rank 1 has not joined");
}

// Who has done its part may end its communicator while others are not there yet.
template <class Join>
void leaving_early(rank_t size, Join const& join) {
  for (int round = 0; round < 10; ++round) {
    collx::communicator<ucx> one = join(settings::from_environment());
    std::vector<double> data(round % 2 == 0 ? 3 : 100'000, 1.0);
    collx::broadcast<collx::algo::pipelined_chain<8>>(one, data, 0);
    for (rank_t r = 1; r < size && one.rank() == 0; ++r) collx::send(one, std::span<double const>(data), r);
    if (one.rank() != 0) collx::receive(one, std::span(data), 0);
    require(data.front() == 1.0 && data.back() == 1.0, "something else came");
  }
}

// The processes of a world: where each rank's is.
std::vector<int> processes_of(collx::communicator<ucx>& world) {
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  int const mine = getpid();
  collx::all_gather(world, std::span(&mine, 1), std::span(all));
  return all;
}

// Whether a process has ended, or does within some time. UCX gets on meanwhile.
bool ends_within(collx::communicator<ucx>& world, int process, std::uint64_t at_most_us) {
  std::uint64_t const start = collx::transport::shared_memory::start_time(process);
  collx::transport::shared_memory::process_watch watch;
  std::uint64_t const deadline_us = collx::now_us() + at_most_us;
  while (!watch.ended(process, start))
    if (collx::now_us() >= deadline_us) return false;
    else world.engine().endpoint().progress();
  return true;
}

// Of a world in which a rank is killed: whoever waits for what will not come waits as long as that.
constexpr std::uint64_t killed_deadline_us = 80'000'000;
constexpr std::size_t last_words = 3;  // some of which may be with the receiver before it asks for them

// Who has sent its last messages leaves at once, and its process ends as soon as it may, before anybody has
// asked for them: they are received all the same.
void gone_before_received(collx::communicator<ucx>& world) {
  auto const processes = processes_of(world);
  std::vector<int> words(16);
  for (rank_t r = 1; r < world.size(); ++r) {  // connections stand
    if (world.rank() == 0) collx::send(world, std::span<int const>(words), r);
    if (world.rank() == r) collx::receive(world, std::span(words), 0);
    if (world.rank() == r) collx::send(world, std::span<int const>(words), 0);
    if (world.rank() == 0) collx::receive(world, std::span(words), r);
  }
  collx::barrier(world);
  if (world.rank() != 0) {
    for (std::size_t i = 0; i < last_words; ++i) {
      words.assign(words.size(), static_cast<int>(i) + world.rank());
      collx::send(world, std::span<int const>(words), 0);
    }
    return;
  }
  for (rank_t r = 1; r < world.size(); ++r)
    (void)ends_within(world, processes[static_cast<std::size_t>(r)], 300'000);  // or it stays: both are right
  for (std::size_t i = 0; i < last_words; ++i)
    for (rank_t r = 1; r < world.size(); ++r) {
      collx::receive(world, std::span(words), r);
      require(words.front() == static_cast<int>(i) + r && words.back() == words.front(),
              "something else came");
    }
}

// One process is killed when all have done their part: the others leave without waiting for what it cannot do
// any more. With `goes_on` they call once more, and are told at once who is missing.
void killed_at_the_end(collx::communicator<ucx>& world, bool goes_on) {
  auto const processes = processes_of(world);
  std::vector<int> values(30'000);
  for (int round = 0; round < 3; ++round) collx::all_reduce<collx::algo::ring>(world, values);
  collx::barrier(world);
  if (world.rank() == 1) {
    // Nobody may still wait for this one's part of the barrier.
    for (rank_t r = 2; r < world.size(); ++r) collx::send(world, std::span<int const>(values), r);
    raise(SIGKILL);
  }
  if (world.rank() >= 2) collx::receive(world, std::span(values), 1);
  require(ends_within(world, processes[1], killed_deadline_us), "rank 1 lives");
  if (!goes_on) return;
  std::uint64_t const before = collx::now_us();
  status how = status::ok;
  try {
    collx::all_reduce<collx::algo::ring>(world, values);
  } catch (collx::error const& failure) {
    how = failure.code();
    require(failure.report().peer == 1, "another rank is blamed");
  }
  require(how == status::peer_lost || how == status::aborted, "a lost rank is not noticed");
  require(collx::now_us() - before < killed_deadline_us / 2, "a lost rank is noticed by the deadline only");
}

template <class Join>
void perform(std::string_view scenario, collx::communicator<ucx>& world, Join const& join_with) {
  auto const join = [&] { return join_with(settings::from_environment()); };
  if (scenario == "matrix") matrix(world);
  else if (scenario == "groups") {
    refused_staging(small_staging().staging_bytes * (world.rank() == 1 ? 2 : 1), join_with);
    refused_staging(256, join_with);
    refused_staging(std::size_t{1} << 40, join_with);
    no_memory_to_join(world, join_with);
    groups(world);
  } else if (scenario == "mismatch") mismatch(world, join);
  else if (scenario == "aborted") aborted(world, join);
  else if (scenario == "no_secret") {
    refused(join_with, "UCX_NET_DEVICES", "eth0", "COLLX_SECRET_FILE");
    refused(join_with, "COLLX_TLS", "1", "use transport::tcp");
  } else if (scenario == "leaving") leaving_early(world.size(), join_with);
  else if (scenario == "gone") gone_before_received(world);
  else if (scenario == "killed") killed_at_the_end(world, true);
  else if (scenario == "killed_last") killed_at_the_end(world, false);
  else throw std::runtime_error("no such scenario");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::string_view const scenario = argv[1];
  if (scenario == "no_secret") unsetenv("COLLX_SECRET"), unsetenv("COLLX_SECRET_FILE");
  bool const kills = scenario.starts_with("killed");
  settings chosen = scenario == "matrix" ? small_staging() : settings::from_environment();
  if (kills) chosen.timeout_us = killed_deadline_us;
  std::uint64_t const begun_us = collx::now_us();
  auto const codes = ucx_ranks::run<ucx>(
      std::atoi(argv[2]), [&](auto& world, auto const& join) { perform(scenario, world, join); }, chosen);
  bool const is_late = kills && collx::now_us() - begun_us > killed_deadline_us;
  if (is_late) std::puts("it took so long as to have ended by the deadline");
  int worst = is_late;
  for (std::size_t r = 0; r < codes.size(); ++r) {
    int const due = kills && r == 1 ? 128 + SIGKILL : 0;
    worst = codes[r] == due ? worst : 1;
  }
  return worst;
}
