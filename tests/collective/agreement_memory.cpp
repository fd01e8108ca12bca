// SPDX-License-Identifier: Apache-2.0
// Ranks that compare their calls, and one of which has no memory left for the others' records: its call
// fails, and theirs do.
// sanitizers: no, it replaces operator new itself
// compiled: apart, it replaces operator new
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "scarce_memory.hpp"
#include "watched.hpp"

TEST_CASE("checking: where a rank has no memory left to compare calls, they fail on all") {
  std::vector<std::string> texts(3);
  std::vector<collx::status> codes(3);
  watched::on_threads(3, [&](auto& comm) {
    comm.checking(collx::checking_level::communication);
    auto const i = static_cast<std::size_t>(comm.rank());
    int mine = 1, sum = 0;
    try {
      scarce_memory::allowance const few(comm.rank() == 1 ? 0 : -1);
      collx::all_reduce(comm, std::span(&mine, 1), std::span(&sum, 1));
    } catch (collx::error const& failure) {
      texts[i] = failure.what();
      codes[i] = failure.code();
    }
  });
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(texts[i]);
    CHECK(codes[i] == (i == 1 ? collx::status::out_of_memory : collx::status::aborted));
    CHECK(texts[i].find(i == 1 ? "all_reduce" : "first reported by rank 1") != std::string::npos);
    if (i == 1) CHECK(texts[i].find("before its first step") != std::string::npos);
  }
}

TEST_CASE("all_reduce_fixed_tree: where a rank has no memory for nodes, it says so until the end") {
  std::vector<std::string> texts(2);
  std::vector<collx::status> codes(2), later(2);
  watched::on_threads(2, [&](auto& comm) {
    auto const i = static_cast<std::size_t>(comm.rank());
    std::vector<int> in(300'000, 1), out(300'000);
    try {
      scarce_memory::allowance const few(comm.rank() == 1 ? 0 : -1);
      collx::all_reduce_fixed_tree(comm, collx::fixed_tree{2}, in, out);
    } catch (collx::error const& failure) {
      texts[i] = failure.what();
      codes[i] = failure.code();
    }
    int mine = 1, sum = 0;
    later[i] = collx::try_all_reduce(comm, std::span(&mine, 1), std::span(&sum, 1));
  });
  CHECK(codes[1] == collx::status::out_of_memory);
  CHECK(texts[1].find("no memory for the nodes") != std::string::npos);
  CHECK(later[1] == collx::status::out_of_memory);
  CHECK(codes[0] == collx::status::aborted);
  CHECK(texts[0].find("first reported by rank 1") != std::string::npos);
  CHECK(later[0] == collx::status::aborted);
}

TEST_CASE("checking: memory for the comparison is taken once") {
  std::vector<int> sums(3);
  watched::on_threads(3, [&](auto& comm) {
    comm.checking(collx::checking_level::communication);
    int mine = 1, sum = 0;
    collx::all_reduce(comm, std::span(&mine, 1), std::span(&sum, 1));
    scarce_memory::allowance const none(0);
    collx::all_reduce(comm, std::span(&mine, 1), std::span(&sums[static_cast<std::size_t>(comm.rank())], 1));
  });
  for (int const sum : sums) CHECK(sum == 3);
}
