// SPDX-License-Identifier: Apache-2.0
// large.cpp where ranks share no memory: a call is many messages, whose frames have 32 bits for a length.
// component: tcp
// compiled: as users do
// sanitizers: no, they take several times the memory, of which there is none left
// ctest: LABELS large
// ctest: TIMEOUT 600
// ctest: RUN_SERIAL ON
// ctest: SKIP_REGULAR_EXPRESSION SKIPPED:
#include <doctest/doctest.h>

#include "collective/large_calls.hpp"
#include "collx/collective/send_receive.hpp"
#include "watched_tcp.hpp"

namespace {

using namespace large;

// More than 2^32 bytes.
constexpr auto sent = [](auto& comm) {
  buffer mine(2 * count);
  if (comm.rank() == 0) fill(mine.all, [](std::size_t i) { return word(0, i); });
  if (comm.rank() == 0) collx::send(comm, mine.all, 1);
  else collx::receive(comm, mine.all, 0);
  check(mine.all, [](std::size_t i) { return word(0, i); });
};

void on_processes(auto const& rank_main) {
  for (int const code : watched::on_tcp_processes(2, rank_main)) CHECK(code == 0);
}

}  // namespace

TEST_CASE("more than 2^31 elements for each rank: reduce_scatter over tcp" * doctest::skip(!runs)) {
  on_processes(reduced_and_scattered);
}

TEST_CASE("more than 2^32 elements: one message over tcp" * doctest::skip(!runs)) { on_processes(sent); }
