// SPDX-License-Identifier: Apache-2.0
// 10,000 seeds of bad weather: each seed draws a world, a few collectives that are in flight at once,
// late and reordered messages and late credits. A failing seed is printed; COLLX_SEED=number runs it
// alone, COLLX_SEEDS=count another number of them.
// ctest: TIMEOUT 300
#include <memory>

#include <doctest/doctest.h>

#include "collective/cases.hpp"
#include "collective/forms.hpp"
#include "collx/algo/all.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "collx/transport/faulty.hpp"

namespace {

using collx::rank_t;
using faulty_mailbox = collx::transport::faulty<collx::transport::mailbox>;
using world = collx::bootstrap::mailbox_ranks<faulty_mailbox>;
using request = collx::request<faulty_mailbox::endpoint>;

// One collective in flight: what every rank passed to it.
struct flight {
  virtual ~flight() = default;
  [[nodiscard]] virtual request start(world& ranks, rank_t rank) = 0;
  // Empty, or what is wrong.
  [[nodiscard]] virtual std::string difference() const = 0;
  [[nodiscard]] virtual std::string what() const = 0;
};

template <class Algorithm, class Contract, class Schedule>
struct flight_of : flight {
  static constexpr auto op = oracle::operator_for<Schedule>();

  explicit flight_of(oracle::setting const& setting) : how(setting) {
    for (rank_t r = 0; r < how.size; ++r) {
      memory.emplace_back(participant::needed(how.size, how.count));
      all.emplace_back(how, r, memory.back().data());
    }
  }
  request start(world& ranks, rank_t rank) override {
    return forms::call<forms::started<Algorithm>>(ranks[rank], how, all[static_cast<std::size_t>(rank)], op);
  }
  std::string difference() const override {
    for (rank_t r = 0; r < how.size; ++r)
      if (std::string const found = all[static_cast<std::size_t>(r)].difference(); !found.empty())
        return "rank " + std::to_string(r) + ", " + found;
    return {};
  }
  std::string what() const override { return cases::describe<Algorithm, Contract>(how); }

  using participant = oracle::participant<Contract, std::remove_const_t<decltype(op)>>;
  oracle::setting how;
  std::vector<std::vector<oracle::element>> memory;
  std::vector<participant> all;
};

// A schedule behind a pointer, so that a seed can draw one.
struct entry {
  bool (*runs_with)(rank_t, std::int32_t depth);
  bool sharded, rooted;
  std::unique_ptr<flight> (*make)(oracle::setting const&);
};

std::vector<entry> const& entries() {
  static std::vector<entry> const all = [] {
    std::vector<entry> found;
    collx::for_each_schedule<collx::algo::all, collx::contract::all>(
        [&]<class Algorithm, class Contract, class Schedule>() {
          found.push_back({[](rank_t n, std::int32_t depth) {
                             return collx::supports<Schedule>(n) && collx::depth<Schedule>(n) <= depth;
                           },
                           Contract::sharded, Contract::rooted,
                           [](oracle::setting const& how) -> std::unique_ptr<flight> {
                             return std::make_unique<flight_of<Algorithm, Contract, Schedule>>(how);
                           }});
        });
    return found;
  }();
  return all;
}

struct drawn {
  explicit drawn(std::uint64_t seed) : random(seed) {
    size = 1 + static_cast<rank_t>(random.below(random.below(8) == 0 ? 17 : 7));
    std::uint64_t const seed_of_world = random.next();
    depth = 2 + static_cast<std::int32_t>(random.below(3));
    ranks = std::make_unique<world>(size, seed_of_world,
                                    collx::transport::settings{.staging_bytes = cases::staging_bytes},
                                    static_cast<std::uint64_t>(depth));
    std::uint32_t const delay = random.below(6), refusal = random.below(5);
    for (rank_t r = 0; r < size; ++r)
      (*ranks)[r].engine().endpoint().inject({.seed = random.next(),
                                              .delay_polls_max = random.below(delay + 1),
                                              .refuse_one_in = refusal == 0 ? 0 : 1 + refusal});
  }

  // One collective with arguments from the seed.
  std::unique_ptr<flight> draw() {
    for (;;) {
      entry const& chosen = entries()[random.below(static_cast<std::uint32_t>(entries().size()))];
      if (!chosen.runs_with(size, depth)) continue;
      auto const n = static_cast<std::uint32_t>(size);
      std::uint32_t const most = random.below(40) == 0 ? (chosen.sharded ? 9000 / n : 9000) : 4 * n + 8;
      return chosen.make({size, random.below(most + 1), random.below(2) == 0,
                          chosen.rooted ? static_cast<rank_t>(random.below(n)) : 0, random.below(512)});
    }
  }

  collx::replayable_random random;
  rank_t size;
  std::int32_t depth;
  std::unique_ptr<world> ranks;
};

// Empty, or what went wrong.
std::string run(std::uint64_t seed) {
  drawn from(seed);
  auto const n = static_cast<std::size_t>(from.size);
  for (int wave = 0; wave < 2; ++wave) {
    // At most one per lane: a second one on a lane would wait inside start, for ranks that cannot move.
    std::vector<std::unique_ptr<flight>> flights;
    for (std::uint32_t i = 0, count = 1 + from.random.below(3); i < count; ++i)
      flights.push_back(from.draw());
    collx::array<request> requests(n * flights.size());
    for (std::size_t i = 0; i < flights.size(); ++i)
      for (rank_t r = 0; r < from.size; ++r)
        requests[i * n + static_cast<std::size_t>(r)] = flights[i]->start(*from.ranks, r);
    collx::status const outcome = from.ranks->drive(requests, 3'000'000);
    std::string all;
    for (auto const& each : flights) all += each->what() + "; ";
    if (outcome != collx::status::ok) return all + "outcome: " + name(outcome);
    for (auto const& each : flights)
      if (std::string const found = each->difference(); !found.empty()) return each->what() + ": " + found;
  }
  return {};
}

std::uint64_t from_environment(char const* variable, std::uint64_t absent) {
  return static_cast<std::uint64_t>(
      collx::environment::number(variable, static_cast<std::int64_t>(absent), 0, std::int64_t{1} << 62));
}

}  // namespace

TEST_CASE("mailbox: 10,000 seeds of delays, reordering and late credits change no result") {
  std::uint64_t const only = from_environment("COLLX_SEED", 0);
  std::uint64_t const count = only != 0 ? 1 : from_environment("COLLX_SEEDS", 10'000);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t const seed = only != 0 ? only : i + 1;
    std::string const wrong = run(seed);
    INFO("repeat with: COLLX_SEED=" << seed << " test_transport_faulty_seeds");
    REQUIRE_MESSAGE(wrong.empty(), wrong);
  }
}
