// SPDX-License-Identifier: Apache-2.0
// A library to which one header and its line in algo/all.hpp were added, and nothing else: the verifier, the
// matrix of the tests and the bench find the algorithm in the list. What the docs' table says of it is
// another test, of the same library.
#include <algorithm>
#include <string_view>

#include <doctest/doctest.h>

#include "collective/each_rank.hpp"
#include "collx/schedule/verify.hpp"
#include "perf/names.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;

// What is found in the list, and belongs to what was added.
struct proof {
  int proved = 0;

  template <class Algorithm, class, class Schedule>
  void operator()() {
    if constexpr (std::is_same_v<Algorithm, collx::algo::token_chain>)
      for (rank_t size = 1; size <= 9; ++size)
        for (rank_t root = 0; root < size; ++root) proved += collx::verify<Schedule>(size, root).ok();
  }
};

std::size_t walk(collx::communicator<collx::transport::threads>& comm) {
  std::vector<oracle::element> memory(each_rank::memory_count(comm.size()));
  std::size_t done = 0;
  for (auto const& each : schedules::all<forms::blocking, collx::transport::threads>())
    if (each.algorithm == std::string_view(collx::algo::token_chain::name))
      done += each_rank::walk_one(each, comm, memory.data());
  return done;
}

}  // namespace

TEST_CASE("an algorithm that was added with one header and one line is proved") {
  proof of;
  collx::for_each_schedule<collx::algo::all, collx::contract::all>(of);
  CHECK(of.proved == 9 * 10 / 2);
}

TEST_CASE("and runs in the matrix, against the reference") {
  std::atomic<std::size_t> done{0};
  for (rank_t size = 1; size <= 5; ++size)
    watched::on_threads(size, [&](auto& comm) { done += walk(comm); },
                        {.staging_bytes = cases::staging_bytes});
  CHECK(done > 100);
}

TEST_CASE("and the bench offers it") {
  auto const offered = perf::algorithms_for("broadcast", 4);
  CHECK(std::any_of(offered.begin(), offered.end(), [](perf::algorithm_entry const& each) {
    return std::string_view(each.name) == "token_chain" && each.supported;
  }));
}
