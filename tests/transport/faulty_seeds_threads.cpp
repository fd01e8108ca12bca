// SPDX-License-Identifier: Apache-2.0
// Seeds of bad weather between ranks that run at the same time: each draws late messages, late credits, a few
// collectives in flight at once, and in every second seed a rank that stops for good.
// What goes wrong, and what is called, follows from the seed; who runs when does not. A failing seed is
// printed; COLLX_SEED=number runs it alone, COLLX_SEEDS=count another number of them.
// ctest: TIMEOUT 300
// ctest: PROCESSORS 2
#include <atomic>

#include "sample.hpp"
#include "transport/seeds.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;
using transport = collx::transport::faulty<collx::transport::threads>;
using communicator = collx::communicator<transport>;
// One of each kind: the mailbox runs all of them.
using algorithms =
    collx::type_list<collx::algo::direct_one_shot, collx::algo::direct_two_shot, collx::algo::knomial_tree<4>,
                     collx::algo::pat, collx::algo::recursive_halving_doubling, collx::algo::ring>;
using drawn = seeds::drawn<transport, algorithms>;

struct every_rank {
  drawn const& from;
  seeds::flights<transport> const& calls;  // of all waves
  std::vector<std::size_t> const& waves;   // where each ends
  std::atomic<int> failed{0};
  std::atomic<bool> stopped{false};

  // One rank; throws what is wrong.
  void operator()(communicator& comm) {
    auto& endpoint = comm.engine().endpoint();
    endpoint.inject(from.faults[static_cast<std::size_t>(comm.rank())]);
    std::size_t first = 0;
    for (std::size_t const end : waves) {
      std::vector<collx::request<transport::endpoint>> requests;
      for (std::size_t i = first; i < end; ++i) requests.push_back(calls[i]->start(comm));
      bool well = true;
      for (std::size_t i = first; i < end; ++i) {
        bool const ended_well = requests[i - first].try_wait() == status::ok;
        well = well && ended_well;
        if (!ended_well) continue;
        if (std::string const wrong = calls[i]->difference(comm.rank()); !wrong.empty())
          throw std::runtime_error(wrong);
      }
      if (!well) return check_failure(comm);
      first = end;
    }
    // A rank whose last messages were staged is done before they are read: it shows in what it does next.
    if (endpoint.stopped()) stopped = collx::try_barrier(comm) != status::ok;
  }

  void check_failure(communicator& comm) {
    ++failed;
    if (comm.rank() == from.victim) {
      stopped = comm.engine().endpoint().stopped();
      if (comm.failure().code != status::peer_lost)
        throw std::runtime_error(collx::error(comm.failure()).what());
      return;
    }
    std::string const wrong = seeds::check_report(comm, calls, from.victim);
    if (!wrong.empty()) throw std::runtime_error(wrong);
  }
};

// Empty, or what went wrong.
std::string run(std::uint64_t seed, int& stops) {
  drawn from(seed, seed % 2 == 0);
  seeds::flights<transport> calls;
  std::vector<std::size_t> waves;
  for (int wave = 0; wave < 4; ++wave) {
    for (auto& each : from.draw_some(2)) calls.push_back(std::move(each));
    waves.push_back(calls.size());
  }
  every_rank all{from, calls, waves};
  try {
    watched::on_threads<transport>(from.size, [&](communicator& comm) { all(comm); },
                                   {.staging_bytes = cases::staging_bytes});
  } catch (std::exception const& failure) {
    return seeds::list_of(calls) + failure.what();
  }
  stops += all.stopped;
  return all.failed > 0 && !all.stopped ? "failed, and nobody has stopped" : "";
}

}  // namespace

TEST_CASE("threads: seeds change no result; where a rank stops, who needed it is told and nobody hangs") {
  int stops = 0;
  seeds::for_each_seed(sample::is_sample ? 100 : 2'000, "test_transport_faulty_seeds_threads",
                       [&](std::uint64_t seed) { return run(seed, stops); });
  MESSAGE("ranks that stopped: " << stops);
  CHECK(stops > 0);
}
