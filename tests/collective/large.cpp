// SPDX-License-Identifier: Apache-2.0
// More than 2^31 elements in one call, of one byte. Takes up to 10 GiB of memory and some seconds: asked for
// with COLLX_TEST_LARGE=1 (`COLLX_TEST_LARGE=1 ctest -L large`), and then skipped, in words, where there is
// less memory. Over messages: large_tcp.cpp.
// compiled: as users do
// sanitizers: no, they take several times the memory, of which there is none left
// ctest: LABELS large
// ctest: TIMEOUT 600
// ctest: RUN_SERIAL ON
// ctest: SKIP_REGULAR_EXPRESSION SKIPPED:
#include <doctest/doctest.h>

#include "collective/large_calls.hpp"
#include "collx/algo/ring.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/broadcast.hpp"
#include "watched.hpp"

namespace {

using namespace large;

template <class Algorithm>
constexpr auto reduced = [](auto& comm) {
  buffer mine(count);
  fill(mine.all, [&](std::size_t i) { return word(comm.rank(), i); });
  collx::all_reduce<Algorithm>(comm, mine.all, collx::sum);
  check(mine.all, [](std::size_t i) { return sum_of_bytes(word(0, i), word(1, i)); });
};
constexpr auto broadcast = [](auto& comm) {
  buffer mine(count);
  if (comm.rank() == 1) fill(mine.all, [](std::size_t i) { return word(1, i); });
  collx::broadcast(comm, mine.all, 1);
  check(mine.all, [](std::size_t i) { return word(1, i); });
};
// In place: each rank's own block is there.
constexpr auto gathered = [](auto& comm) {
  buffer mine(2 * count);
  bytes const own = block(mine.all, comm.rank());
  fill(own, [&](std::size_t i) { return word(comm.rank(), i); });
  collx::all_gather(comm, own, mine.all);
  for (rank_t const r : {0, 1})
    check(block(mine.all, r), [&](std::size_t i) { return word(r, i); });
};

void on_processes(auto const& rank_main) {
  for (int const code : watched::on_processes(2, rank_main)) CHECK(code == 0);
}

}  // namespace

TEST_CASE("more than 2^31 elements: all_reduce on threads, as the library chooses and around a ring" *
          doctest::skip(!runs)) {
  watched::on_threads(2, reduced<collx::automatic>);
  watched::on_threads(2, reduced<collx::algo::ring>);
}

TEST_CASE("more than 2^31 elements: all_reduce and broadcast on processes" * doctest::skip(!runs)) {
  on_processes(reduced<collx::automatic>);
  on_processes(broadcast);
}

TEST_CASE("more than 2^31 elements of each rank: all_gather on processes" * doctest::skip(!runs)) {
  on_processes(gathered);
}

TEST_CASE("more than 2^31 elements for each rank: reduce_scatter on processes" * doctest::skip(!runs)) {
  on_processes(reduced_and_scattered);
}
