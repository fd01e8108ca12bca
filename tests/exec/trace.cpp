// SPDX-License-Identifier: Apache-2.0
// What the executor does on a mapped transport is what was proved: the recorded steps of each rank equal
// those of the symbolic run, fragment by fragment. On a message transport: messages.cpp. So is what short
// calls do, message by message.
// sanitizers: no, half a minute, for an executor that the matrices run under them
#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "exec/traced.hpp"
#include "exec/traced_short.hpp"
#include "sample.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;

void run_on_threads(traced::entry const& called) {
  bool const rooted = called.collective->rooted;
  for (rank_t const size : {2, 3, 4, 5, 8}) {
    if (!called.supports(size)) continue;
    rank_t const root = rooted && size > 3 ? size - 1 : 0;
    CAPTURE(called.collective->name);
    CAPTURE(called.algorithm);
    std::vector<traced::traced_rank> all(static_cast<std::size_t>(size),
                                         {called, size, cases::large_count(*called.collective, size)});
    watched::on_threads(size,
                        [&](collx::communicator<collx::transport::threads>& comm) {
                          auto& engine = comm.engine();
                          auto& mine = all[static_cast<std::size_t>(comm.rank())];
                          auto const what = [&] {
                            return collx::exec::call{called.collective->name, called.algorithm};
                          };
                          if (engine.run(what, mine.maker(engine, root)) != collx::status::ok)
                            throw collx::error(comm.failure());
                        },
                        {.staging_bytes = cases::staging_bytes});
    auto const proved = traced::proof::of(called, size, root);
    for (rank_t r = 0; r < size; ++r) all[static_cast<std::size_t>(r)].check(proved, {r, size, root});
  }
}

// Nothing, letters of one line, the longest ones of up to eight and of up to four ranks, the shortest blocks
// that are staged, the longest that are not lent where they could be, the shortest that are, and the longest.
constexpr std::size_t short_counts[] = {0, 1, 4, 5, 32, 33, 64, 65, 511, 512, 2048};
static_assert(32 * sizeof(oracle::element) == collx::transport::mapped::inbox_for(0, 8).enclosed_bytes_max);
static_assert(64 * sizeof(oracle::element) == collx::transport::mapped::inbox_for(0, 4).enclosed_bytes_max);
static_assert(2048 * sizeof(oracle::element) == collx::exec::short_staged_bytes);

void run_shortly(traced::short_world& world, traced::short_entry const& what, rank_t size) {
  for (rank_t const root : cases::roots(*what.called.collective, size))
    for (std::size_t const count : short_counts)
      for (bool const in_place : {false, true}) {
        oracle::setting const how{size, count, in_place, root};
        std::string const call = cases::describe(what.called.collective->name, what.called.algorithm, how);
        CAPTURE(call);
        world.run(what, how);
      }
}

// Of which blocks fit a letter, are staged, and can be lent.
constexpr std::size_t one = 1, staged = 65, lent = 512;

// Refused whatever a rank asks for, one after the other.
void run_partly(traced::short_world& world, traced::short_entry const& what, rank_t size, std::size_t count) {
  oracle::setting const how{size, count, false, 1};
  std::string const call = cases::describe(what.called.collective->name, what.called.algorithm, how);
  CAPTURE(call);
  for (rank_t rank = 0; rank < size; ++rank)
    for (int ask = 0;; ++ask) {
      CAPTURE(rank);
      CAPTURE(ask);
      world.run(what, how, rank, ask);
      if (world.at(rank).asks <= ask) break;
    }
}

}  // namespace

TEST_CASE("threads: the steps taken are those of the run that proves the schedule, for every fragment") {
  for (traced::entry const& each : traced::every_schedule<sample::algorithms>()) run_on_threads(each);
}

TEST_CASE("short calls: what is taken, combined, stored and sent is what the proof did, in its order") {
  auto const all = traced::every_short_schedule<sample::algorithms>();
  CHECK(all.size() >= 10);  // the direct ones
  for (rank_t const size : {2, 3, 4, 5, 8}) {
    traced::short_world world(size);
    for (traced::short_entry const& each : all) {
      if (!each.called.supports(size)) continue;
      for (bool const lends : {false, true}) {
        world.lends(lends);
        run_shortly(world, each, size);
        if (size > 3) continue;
        for (std::size_t const count : {one, staged, lent}) run_partly(world, each, size, count);
      }
    }
  }
}
