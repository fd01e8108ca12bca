// SPDX-License-Identifier: Apache-2.0
// More ranks than it is counted for what a schedule stages: what it says itself, and its executors go by,
// lets long messages through.
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/push_pull.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/exec/erased_schedule.hpp"
#include "collx/transport/threads.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;

constexpr rank_t many = collx::exec::counted_size_max + 1;

template <class Algorithm>
void check(collx::communicator<collx::transport::threads>& comm) {
  rank_t const root = many - 2;
  std::vector<int> values(100'000), expected(values.size()), all(1000 * static_cast<std::size_t>(many));
  std::iota(expected.begin(), expected.end(), 7);
  if (comm.rank() == root) values = expected;
  collx::broadcast<Algorithm>(comm, values, root);
  CHECK(values == expected);
  std::vector<int> const own(1000, comm.rank());
  collx::all_gather<Algorithm>(comm, own, all);
  bool right = true;
  for (std::size_t i = 0; i < all.size(); ++i) right = right && all[i] == static_cast<int>(i / 1000);
  CHECK(right);
}

}  // namespace

TEST_CASE("what direct schedules stage is no more than they send at once") {
  using one = collx::algo::direct_one_shot;
  using two = collx::algo::direct_two_shot;
  collx::shape const n{4096, 1};
  CHECK(collx::staged_chunks_bound<one::all_reduce>(n) == 1);
  CHECK(collx::staged_chunks_bound<one::scan>(n) == 1);
  CHECK(collx::staged_chunks_bound<one::exclusive_scan>(n) == 1);
  CHECK(collx::staged_chunks_bound<two::all_reduce>(n) == 4096);
  CHECK(collx::staged_chunks_bound<two::broadcast>(n) == 4096);
}

TEST_CASE("broadcasts and all_gathers of 65 ranks, pushed and direct") {
  watched::on_threads(many, [](auto& comm) {
    check<collx::algo::push_pull>(comm);
    check<collx::algo::direct_one_shot>(comm);
  });
}
