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

struct on_threads {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    for (rank_t const size : {2, 3, 4, 5, 8}) {
      if (!collx::supports<Schedule>(size)) continue;
      rank_t const root = Contract::rooted && size > 3 ? size - 1 : 0;
      CAPTURE(std::string(Contract::name));
      CAPTURE(std::string(Algorithm::name));
      std::vector<traced::traced_rank<Schedule>> all(static_cast<std::size_t>(size),
                                                     {size, cases::large_count<Contract>(size)});
      watched::on_threads(size,
                          [&](collx::communicator<collx::transport::threads>& comm) {
                            auto& engine = comm.engine();
                            auto& mine = all[static_cast<std::size_t>(comm.rank())];
                            auto const what = [] {
                              return collx::exec::call{Contract::name, Algorithm::name};
                            };
                            if (engine.run(what, mine.maker(engine, root)) != collx::status::ok)
                              throw collx::error(comm.failure());
                          },
                          {.staging_bytes = cases::staging_bytes});
      auto const proved = traced::proof::of<Schedule>(size, root);
      for (rank_t r = 0; r < size; ++r) all[static_cast<std::size_t>(r)].check(proved, {r, size, root});
    }
  }
};

}  // namespace

TEST_CASE("threads: the steps taken are those of the run that proves the schedule, for every fragment") {
  collx::for_each_schedule<sample::algorithms, collx::contract::all>(on_threads{});
}
