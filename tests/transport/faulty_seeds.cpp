// SPDX-License-Identifier: Apache-2.0
// 10,000 seeds of bad weather, and 10,000 in which a rank stops for good where the seed has it: each
// draws a world, a few collectives that are in flight at once, late and reordered messages and late credits.
// A failing seed is printed; COLLX_SEED=number runs it alone, COLLX_SEEDS=count another number of them.
// ctest: TIMEOUT 300
// thread sanitizer: no, one thread steps all ranks
#include "collx/algo/all.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "sample.hpp"
#include "transport/seeds.hpp"

namespace {

using collx::rank_t;
using collx::status;
using transport = collx::transport::faulty<collx::transport::mailbox>;
using world = collx::bootstrap::mailbox_ranks<transport>;
using request = collx::request<transport::endpoint>;
using drawn = seeds::drawn<transport, collx::algo::all>;

std::unique_ptr<world> world_of(drawn const& from) {
  auto ranks = std::make_unique<world>(from.size, from.seed_of_world,
                                       collx::transport::settings{.staging_bytes = cases::staging_bytes},
                                       static_cast<std::uint64_t>(from.depth));
  for (rank_t r = 0; r < from.size; ++r)
    (*ranks)[r].engine().endpoint().inject(from.faults[static_cast<std::size_t>(r)]);
  return ranks;
}

collx::array<request> start_all(world& ranks, rank_t size, seeds::flights<transport> const& flights) {
  auto const n = static_cast<std::size_t>(size);
  collx::array<request> requests(n * flights.size());
  for (std::size_t i = 0; i < flights.size(); ++i)
    for (rank_t r = 0; r < size; ++r)
      requests[i * n + static_cast<std::size_t>(r)] = flights[i]->start(ranks[r]);
  return requests;
}

// All of them take a sanitizer a minute.
constexpr std::uint64_t seed_count = sample::is_sample ? 2'000 : 10'000;

// Empty, or what went wrong.
std::string run(std::uint64_t seed) {
  drawn from(seed, false);
  auto const ranks = world_of(from);
  for (int wave = 0; wave < 2; ++wave) {
    auto const flights = from.draw_some(from.depth);
    auto requests = start_all(*ranks, from.size, flights);
    status const outcome = ranks->drive(requests, 3'000'000);
    if (outcome != status::ok) return seeds::list_of(flights) + "outcome: " + name(outcome);
    for (auto const& each : flights)
      for (rank_t r = 0; r < from.size; ++r)
        if (std::string const found = each->difference(r); !found.empty()) return found;
  }
  return {};
}

// The same, with a rank that stops.
class stopping_run {
 public:
  explicit stopping_run(std::uint64_t seed) : from_(seed, true), ranks_(world_of(from_)) {}

  // Empty, or what went wrong.
  std::string operator()() {
    for (int wave = 0; wave < 3; ++wave) {
      std::size_t const before = calls_.size();
      for (auto& each : from_.draw_some(from_.depth)) calls_.push_back(std::move(each));
      std::string const hung = run_from(before);
      if (!hung.empty()) return hung;
      bool all_well = true;
      for (rank_t r = 0; r < from_.size; ++r) {
        bool well = true;
        for (std::size_t i = before; i < calls_.size(); ++i) {
          bool const ended_well = outcome(i, r) == status::ok;
          well = well && ended_well;
          if (!ended_well) continue;
          if (std::string const wrong = calls_[i]->difference(r); !wrong.empty()) return wrong;
        }
        all_well = all_well && well;
        if (well || r == from_.victim) continue;
        if (std::string const wrong = seeds::check_report((*ranks_)[r], calls_, from_.victim); !wrong.empty())
          return wrong;
      }
      bool const has_stopped = stopped();
      // Nobody needs a receipt for the last of his messages before the next call.
      bool const at_send = from_.faults[static_cast<std::size_t>(from_.victim)].stop_at_send != 0;
      if (all_well && has_stopped && at_send)
        return "nobody was told that rank " + std::to_string(from_.victim) + " stopped";
      if (!all_well) return has_stopped ? "" : "failed, and nobody has stopped";
    }
    return {};
  }

  [[nodiscard]] bool stopped() const { return (*ranks_)[from_.victim].engine().endpoint().stopped(); }

 private:
  [[nodiscard]] status& outcome(std::size_t call, rank_t r) {
    return outcomes_[call * static_cast<std::size_t>(from_.size) + static_cast<std::size_t>(r)];
  }

  // Starts the calls from `first` on, and tests all in turn until every one has ended on every rank.
  std::string run_from(std::size_t first) {
    auto const n = static_cast<std::size_t>(from_.size);
    std::vector<request> requests;
    outcomes_.resize(calls_.size() * n, status::pending);
    for (std::size_t i = first; i < calls_.size(); ++i)
      for (rank_t r = 0; r < from_.size; ++r) requests.push_back(calls_[i]->start((*ranks_)[r]));
    std::size_t open = requests.size();
    for (int looks = 0; open != 0; ++looks) {
      if (looks == 100'000) return "hangs in " + calls_[first]->what() + ", or in one started with it";
      for (std::size_t i = 0; i < requests.size(); ++i) {
        status& here = outcomes_[first * n + i];
        if (here != status::pending) continue;
        here = requests[i].try_test();
        open -= here != status::pending;
      }
      if (open == 0 || !stopped() || told_) continue;
      told_ = tell();
    }
    return {};
  }

  // A rank whose last messages were staged is done before they are read. That it is gone shows in what it
  // does next: true if that was to be done, and is.
  bool tell() {
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (outcome(i, from_.victim) == status::pending) return false;
    (void)collx::start::barrier((*ranks_)[from_.victim]).try_wait();
    return true;
  }

  drawn from_;
  std::unique_ptr<world> ranks_;
  seeds::flights<transport> calls_;
  std::vector<status> outcomes_;
  bool told_ = false;
};

}  // namespace

TEST_CASE("mailbox: 10,000 seeds of delays, reordering and late credits change no result") {
  seeds::for_each_seed(seed_count, "test_transport_faulty_seeds", run);
}

TEST_CASE("mailbox: in 10,000 seeds a rank stops: who needed it is told, who did not is done, nobody hangs") {
  int stopped = 0;
  seeds::for_each_seed(seed_count, "test_transport_faulty_seeds", [&](std::uint64_t seed) {
    stopping_run one(seed);
    std::string wrong = one();
    stopped += one.stopped();
    return wrong;
  });
  MESSAGE("ranks that stopped: " << stopped);
  CHECK(stopped > 0);
}
