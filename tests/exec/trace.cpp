// SPDX-License-Identifier: Apache-2.0
// What the executor does on a mapped transport is what was proved: the recorded steps of each rank equal
// those of the symbolic run, fragment by fragment. On a message transport: messages.cpp.
// sanitizers: no, half a minute, for an executor that the matrices run under them
#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "exec/traced.hpp"
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

}  // namespace

TEST_CASE("threads: the steps taken are those of the run that proves the schedule, for every fragment") {
  for (traced::entry const& each : traced::every_schedule<sample::algorithms>()) run_on_threads(each);
}
