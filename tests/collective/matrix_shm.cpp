// SPDX-License-Identifier: Apache-2.0
// Every schedule for 2 to 8 ranks that are processes, with private memory, symmetric memory, and
// one kind on some ranks and the other on the rest: ranks cannot know what the others pass (sample.hpp: with
// some of these numbers of ranks). Asked for, up to 33.
// ctest: TIMEOUT 300
// ctest: PROCESSORS 2
// thread sanitizer: no, each rank is a process of one thread
#include <doctest/doctest.h>

#include "asked_for.hpp"
#include "collective/disagreement.hpp"
#include "collective/each_rank.hpp"
#include "collx/bootstrap/processes.hpp"
#include "sample.hpp"
#include "shared_with_forks.hpp"
#include "watched.hpp"

using namespace each_rank;
using collx::transport::shm;

namespace {

enum class whose_memory { own, symmetric, mixed };

bool all_ended_well(collx::bootstrap::exit_codes const& codes) {
  for (int const code : codes)
    if (code != 0) return false;
  return true;
}

template <template <class> class Form, class Algorithms = collx::algo::all>
void walk_in_processes(rank_t size, whose_memory kind, cases::some const& wanted = {}) {
  CAPTURE(size);
  auto const codes = watched::on_processes(
      size,
      [&](collx::communicator<shm>& comm) {
        std::vector<oracle::element> own(memory_count(size));
        auto const symmetric = comm.allocate<oracle::element>(memory_count(size));
        bool const mine = kind == whose_memory::own || (kind == whose_memory::mixed && comm.rank() % 2 == 0);
        if (walk<Form, Algorithms>(comm, mine ? own.data() : symmetric.data(), wanted) == 0)
          throw std::runtime_error("walked nothing");
      },
      {.staging_bytes = cases::staging_bytes});
  CHECK(all_ended_well(codes));
}

void check_barriers(rank_t size) {
  CAPTURE(size);
  shared_with_forks<std::atomic<std::int64_t>> arrived;
  CHECK(all_ended_well(
      watched::on_processes(size, [&](collx::communicator<shm>& comm) { walk_barriers(comm, *arrived); })));
}

}  // namespace

TEST_CASE("shm: every schedule of 1 to 8 processes gives what the reference gives, private memory") {
  (void)oracle::reference::get();
  for (rank_t size = 1; size <= 8; ++size) {
    if (sample::takes_running(size)) walk_in_processes<forms::blocking>(size, whose_memory::own);
  }
}

TEST_CASE("shm: the same with symmetric memory") {
  (void)oracle::reference::get();
  for (rank_t size = 1; size <= 8; ++size) {
    if (sample::takes_running(size)) walk_in_processes<forms::tried>(size, whose_memory::symmetric);
  }
}

TEST_CASE("shm: the same with private memory on some ranks and symmetric memory on others") {
  (void)oracle::reference::get();
  for (rank_t size = 2; size <= 8; ++size) {
    if (!sample::takes_running(size)) continue;
    // The matrix on mailboxes starts all of them.
    walk_in_processes<forms::started, sample::algorithms>(size, whose_memory::mixed);
  }
}

// Of two ranks, one may have the system store to the other's private memory.
TEST_CASE("shm: nobody stores behind what a process with another count passed, be it private or symmetric") {
  using disagreement::counts_t;
  for (auto const& [counts, symmetric] : {std::pair{counts_t{20'011, 9001}, false},
                                          {{9001, 20'011}, true},
                                          {{396, 404}, false},
                                          {{396, 404}, true}}) {
    if (sample::is_sample && symmetric) continue;
    CAPTURE(counts[0]);
    bool const is_symmetric = symmetric;
    counts_t const& passed = counts;
    std::size_t const room = disagreement::room_of(counts);
    disagreement::for_each<forms::blocking, shm>(2, [&](auto const& called, rank_t root) {
      CAPTURE(std::string(called.collective->name));
      CAPTURE(std::string(called.algorithm));
      auto const one_rank = [&](collx::communicator<shm>& comm) {
        std::vector<oracle::element> own(is_symmetric ? 0 : 2 * room);
        auto const shared = comm.allocate<oracle::element>(is_symmetric ? 2 * room : 1);
        disagreement::memory mine(is_symmetric ? shared.data() : own.data(), room);
        (void)mine.call(called, comm, root, passed[static_cast<std::size_t>(comm.rank())]);
        if (!mine.is_untouched()) throw std::runtime_error("memory behind the buffers was changed");
      };
      collx::transport::settings chosen;
      chosen.staging_bytes = cases::staging_bytes;
      chosen.single_copy_bytes = 1024;
      CHECK(all_ended_well(watched::on_processes(2, one_rank, chosen)));
    });
  }
}

TEST_CASE("shm: nobody leaves a barrier before everybody has come") {
  for (rank_t size = 2; size <= 8; ++size) check_barriers(size);
}

TEST_CASE("wide: shm, every schedule of 9 to 33 processes, private memory, symmetric memory, and both") {
  if (!is_wide_asked_for()) return;
  (void)oracle::reference::get();
  for (rank_t size = 9; size <= oracle::reference::size_max; ++size) {
    if (!takes_wide(size)) continue;
    auto const first = static_cast<std::size_t>(size);
    walk_in_processes<forms::blocking>(size, whose_memory::own);
    walk_in_processes<forms::started, sample::algorithms>(size, whose_memory::mixed, {5, first});
    check_barriers(size);
    // Whose memory it is changes nothing in a schedule, and each of these walks takes seconds.
    if (size % 3 == 0 || size == 16 || size == 17 || size == 32)
      walk_in_processes<forms::tried>(size, whose_memory::symmetric);
  }
}
