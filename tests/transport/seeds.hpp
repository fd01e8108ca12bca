// SPDX-License-Identifier: Apache-2.0
// What a seed draws: a world with late and reordered messages and late credits, collectives that are in
// flight at once, and perhaps a rank that stops for good, at one of its sends or with a message read and not
// acknowledged. Everything follows from the seed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "collective/schedules.hpp"
#include "collx/core/environment.hpp"
#include "collx/transport/faulty.hpp"

namespace seeds {

using collx::rank_t;
using collx::status;

template <class Transport>
using entry = schedules::entry<forms::started, Transport>;
template <class Transport>
using request_of = collx::request<typename Transport::endpoint>;

// One collective in flight: what every rank passes to it.
template <class Transport>
class flight {
 public:
  flight(entry<Transport> const& schedule, oracle::setting const& setting)
      : called_(schedule), how_(setting) {
    for (rank_t r = 0; r < how_.size; ++r) {
      std::size_t const elements = oracle::participant::needed(*called_.collective, how_.size, how_.count);
      memory_.emplace_back(elements * sizeof(oracle::element));
      all_.push_back(called_.participant(how_, r, reinterpret_cast<oracle::element*>(memory_.back().data())));
    }
  }
  flight(flight const&) = delete;

  [[nodiscard]] request_of<Transport> start(collx::communicator<Transport>& comm) const {
    return called_(comm, how_, all_[static_cast<std::size_t>(comm.rank())]);
  }
  // Empty, or what is wrong with what a rank got.
  [[nodiscard]] std::string difference(rank_t rank) const {
    std::string const found = all_[static_cast<std::size_t>(rank)].difference();
    return found.empty() ? found : what() + ": rank " + std::to_string(rank) + ", " + found;
  }
  [[nodiscard]] std::string what() const { return called_.describe(how_); }
  [[nodiscard]] bool takes_number() const {
    return how_.count != 0 || is(collx::contract::barrier::name, called_.algorithm);
  }
  [[nodiscard]] bool is(char const* collective, char const* algorithm) const {
    return std::string_view(collective) == called_.collective->name &&
           std::string_view(algorithm) == called_.algorithm;
  }

 private:
  entry<Transport> const& called_;
  oracle::setting how_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<oracle::participant> all_;
};

template <class Transport>
using flights = std::vector<std::unique_ptr<flight<Transport>>>;

// The world of a seed, and after it what is called there, drawn in order.
template <class Transport, class Algorithms>
struct drawn {
  explicit drawn(std::uint64_t seed, bool somebody_stops) : random(seed) {
    size = 1 + static_cast<rank_t>(random.below(random.below(8) == 0 ? 17 : 7));
    if (somebody_stops && size == 1) size = 2;
    seed_of_world = random.next();
    depth = 2 + static_cast<std::int32_t>(random.below(3));
    std::uint32_t const delay = random.below(6), refusal = random.below(5);
    for (rank_t r = 0; r < size; ++r)
      faults.push_back({.seed = random.next(),
                        .delay_polls_max = random.below(delay + 1),
                        .refuse_one_in = refusal == 0 ? 0 : 1 + refusal});
    if (!somebody_stops) return;
    victim = static_cast<rank_t>(random.below(static_cast<std::uint32_t>(size)));
    // Mostly in the first collectives, sometimes never.
    std::uint64_t const when = 1 + random.below(1u << random.below(7));
    collx::transport::fault_plan& plan = faults[static_cast<std::size_t>(victim)];
    (random.below(2) == 0 ? plan.stop_at_send : plan.stop_at_consume) = when;
  }

  // One collective with arguments from the seed. `depth_of_world`: of messages in flight.
  std::unique_ptr<flight<Transport>> draw(std::int32_t depth_of_world) {
    auto const& all = schedules::all<forms::started, Transport, Algorithms>();
    for (;;) {
      auto const& chosen = all[random.below(static_cast<std::uint32_t>(all.size()))];
      if (!chosen.supports(size) || chosen.depth(size) > depth_of_world) continue;
      oracle::collective const& is = *chosen.collective;
      auto const n = static_cast<std::uint32_t>(size);
      std::uint32_t const most = random.below(40) == 0 ? (is.sharded ? 9000 / n : 9000) : 4 * n + 8;
      oracle::setting const how{size, random.below(most + 1), random.below(2) == 0,
                                is.rooted ? static_cast<rank_t>(random.below(n)) : 0, random.below(512)};
      return std::make_unique<flight<Transport>>(chosen, how);
    }
  }

  // At most one per lane: a second one on a lane would wait inside start, for ranks that cannot move.
  flights<Transport> draw_some(std::int32_t depth_of_world) {
    flights<Transport> some;
    for (std::uint32_t i = 0, count = 1 + random.below(3); i < count; ++i)
      some.push_back(draw(depth_of_world));
    return some;
  }

  collx::replayable_random random;
  rank_t size;
  std::uint64_t seed_of_world;
  std::int32_t depth;
  rank_t victim = collx::no_rank;
  std::vector<collx::transport::fault_plan> faults;
};

template <class Transport>
std::string list_of(flights<Transport> const& calls) {
  std::string all;
  for (auto const& each : calls) all += each->what() + "; ";
  return all;
}

// Of a rank that is not the victim, whose calls did not all end well: empty, or what its report lacks.
// `calls`: all since the communicator was made, in the order in which they were started. Those without
// elements need no message, and take no number.
template <class Transport>
std::string check_report(collx::communicator<Transport> const& comm, flights<Transport> const& calls,
                         rank_t victim) {
  collx::failure_report const& report = comm.failure();
  std::string const text = collx::error(report).what();
  if (report.code != status::aborted)
    return list_of(calls) + "rank " + std::to_string(victim) +
           " stopped, but another failure was first: " + text;
  if (report.rank != comm.rank()) return "it is another's report: " + text;
  std::size_t i = 0;
  for (std::uint64_t number = 0; i < calls.size(); ++i)
    if (calls[i]->takes_number() && number++ == report.sequence) break;
  if (i == calls.size()) return "no such number: " + text;
  if (!calls[i]->is(report.collective, report.algorithm))
    return list_of(calls) + "another has this number: " + text;
  if (report.peer < 0 || report.peer >= comm.size()) return "names no peer: " + text;
  if (report.reported_by != victim) return "does not say who stopped: " + text;
  return {};
}

inline std::uint64_t from_environment(char const* variable, std::uint64_t absent) {
  return static_cast<std::uint64_t>(
      collx::environment::number(variable, static_cast<std::int64_t>(absent), 0, std::int64_t{1} << 62));
}

// run(seed), which returns what is wrong, for so many seeds, COLLX_SEEDS of them from COLLX_FIRST_SEED on, or
// COLLX_SEED alone.
template <class Run>
void for_each_seed(std::uint64_t count, char const* program, Run const& run) {
  std::uint64_t const only = from_environment("COLLX_SEED", 0);
  std::uint64_t const first = only != 0 ? only : from_environment("COLLX_FIRST_SEED", 1);
  count = only != 0 ? 1 : from_environment("COLLX_SEEDS", count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t const seed = first + i;
    INFO("repeat with: COLLX_SEED=" << seed << std::string(" ") + program);
    std::string const wrong = run(seed);
    REQUIRE_MESSAGE(wrong.empty(), wrong);
  }
}

}  // namespace seeds
