// SPDX-License-Identifier: Apache-2.0
// What was made of a communicator goes on when that is moved, while it is under way or before.
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;

// Of `comm`, which moves to `to`, and there takes the place of another one.
template <class Communicator>
void move_about(Communicator& world) {
  Communicator comm = world.split(0, world.rank());
  rank_t const n = comm.size(), next = (comm.rank() + 1) % n, before = (comm.rank() + n - 1) % n;
  int const sum = static_cast<int>(n * (n + 1) / 2);
  std::vector<int> started(50'000, comm.rank() + 1), kept(10), small(1, comm.rank() + 1);
  std::vector<int> out(3, comm.rank()), in(3), around(3);
  auto line = comm.along({comm.rank() % 2, 2, (n + 1 - comm.rank() % 2) / 2});
  collx::graph const edges(comm, {before}, {next});
  collx::exchange ring(comm);
  ring.send(out, next);
  ring.receive(in, before);
  auto persistent = collx::persistent::all_reduce(comm, kept);
  auto request = collx::start::all_reduce(comm, started);

  Communicator moved = std::move(comm);
  Communicator elsewhere = world.split(0, -world.rank());
  elsewhere = std::move(moved);  // swaps

  request.wait();
  require(started.front() == sum && started.back() == sum, "a started call");
  kept.assign(kept.size(), elsewhere.rank() + 1);
  persistent.start();
  persistent.wait();
  require(kept.back() == sum, "a persistent call");
  ring.run();
  require(in[2] == before, "an exchange");
  collx::neighbour_all_gather(elsewhere, edges, out, around);
  require(around[2] == before, "a graph");
  collx::all_reduce(line, small);
  int of_line = 0;
  for (rank_t r = elsewhere.rank() % 2; r < n; r += 2) of_line += r + 1;
  require(small[0] == of_line, "a line");
  collx::all_reduce(elsewhere, small);
  require(elsewhere.size() == n, "not the one that was moved");
  moved = Communicator(world.split(0, world.rank()));  // may be assigned to
  collx::barrier(moved);
}

}  // namespace

TEST_CASE("a communicator moves while what was made of it is under way") {
  watched::on_threads(3, [](auto& world) { move_about(world); });
  for (int const code : watched::on_processes(4, [](auto& world) { move_about(world); })) CHECK(code == 0);
}
