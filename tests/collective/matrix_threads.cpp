// SPDX-License-Identifier: Apache-2.0
// Every schedule for 1 to 17 ranks that are threads: blocking calls (sample.hpp: with some of these numbers).
// Asked for, up to 33.
// ctest: TIMEOUT 300
// ctest: PROCESSORS 2
// address sanitizer: no, matrix_shm.cpp walks the same schedules, with the same endpoints
#include <doctest/doctest.h>

#include "asked_for.hpp"
#include "collective/disagreement.hpp"
#include "collective/each_rank.hpp"
#include "collx/bootstrap/threads.hpp"
#include "sample.hpp"
#include "watched.hpp"

using namespace each_rank;
using collx::transport::threads;

namespace {

// Returns how many collectives that were, counted on every rank.
std::size_t walk_in_threads(rank_t size, cases::some const& wanted = {}) {
  CAPTURE(size);
  std::atomic<std::size_t> done{0};
  watched::on_threads(size,
                      [&](collx::communicator<threads>& comm) {
                        std::vector<oracle::element> memory(memory_count(size));
                        done += walk<forms::blocking>(comm, memory.data(), wanted);
                      },
                      {.staging_bytes = cases::staging_bytes});
  return done;
}

void check_barriers(rank_t size) {
  CAPTURE(size);
  std::atomic<std::int64_t> arrived{0};
  watched::on_threads(size, [&](collx::communicator<threads>& comm) { walk_barriers(comm, arrived); });
}

}  // namespace

TEST_CASE("threads: every schedule of 1 to 17 ranks gives what the reference gives") {
  (void)oracle::reference::get();
  std::size_t done = 0;
  for (rank_t size = 1; size <= 17; ++size)
    if (sample::takes_running(size)) done += walk_in_threads(size);
  MESSAGE("collectives, counted on every rank: " << done);
  CHECK(done > 10'000);
}

// The counts of 400 and 416 are cut in three such that the last parts are alike, and lie apart.
TEST_CASE("threads: ranks with different counts are told, and nobody stores behind what another one passed" *
          doctest::skip(disagreement::sees_races)) {
  using disagreement::counts_t;
  for (counts_t const& counts :
       {counts_t{3000, 700}, counts_t{700, 3000}, counts_t{400, 400, 416}, counts_t{9001, 20'011, 9001}}) {
    auto const size = static_cast<rank_t>(counts.size());
    std::size_t const room = disagreement::room_of(counts);
    std::vector<oracle::element> all(2 * room * counts.size());
    disagreement::for_each<forms::blocking, threads>(size, [&](auto const& called, rank_t root) {
      CAPTURE(std::string(called.collective->name));
      CAPTURE(std::string(called.algorithm));
      CAPTURE(counts[0]);
      CAPTURE(root);
      std::vector<disagreement::memory> ranks;
      for (std::size_t r = 0; r < counts.size(); ++r) ranks.emplace_back(&all[2 * room * r], room);
      std::atomic<int> told{0};
      watched::on_threads(size,
                          [&](collx::communicator<threads>& comm) {
                            auto const i = static_cast<std::size_t>(comm.rank());
                            told += ranks[i].call(called, comm, root, counts[i]);
                          },
                          {.staging_bytes = cases::staging_bytes});
      CHECK(told > 0);
      for (auto const& each : ranks) CHECK(each.is_untouched());
    });
  }
}

TEST_CASE("threads: nobody leaves a barrier before everybody has come") {
  for (rank_t size = 1; size <= 17; ++size)
    if (sample::takes(size)) check_barriers(size);
}

TEST_CASE("wide: threads, every schedule of 18 to 33 ranks") {
  if (!is_wide_asked_for()) return;
  (void)oracle::reference::get();
  for (rank_t size = 18; size <= oracle::reference::size_max; ++size) {
    if (!takes_wide(size)) continue;
    CHECK(walk_in_threads(size) > 0);
    check_barriers(size);
  }
}
