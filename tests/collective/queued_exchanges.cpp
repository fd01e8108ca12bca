// SPDX-License-Identifier: Apache-2.0
// Exchanges and calls on graphs that are started while their lane is taken begin later, with what they were
// called with.
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "collx/bootstrap/threads.hpp"
#include "collx/collx.hpp"
#include "watched.hpp"

TEST_CASE("an exchange and a call on a graph, started behind requests on their lanes") {
  watched::on_threads(2,
                      [](auto& comm) {
                        collx::rank_t const other = 1 - comm.rank();
                        std::vector<collx::rank_t> const peers{other};
                        collx::graph const edges(comm, peers, peers);
                        // Some hundred fragments on each of the lanes for started requests.
                        std::vector<float> a(2'000'000, 1.0f), b(a);
                        std::vector<int> mine(100, comm.rank() + 7), theirs(100), gathered(100);
                        collx::exchange list(comm);
                        list.send(mine, other);
                        list.receive(theirs, other);
                        auto first = collx::start::all_reduce(comm, a);
                        auto second = collx::start::all_reduce(comm, b);
                        auto third = list.start();
                        auto fourth = collx::start::neighbour_all_gather(comm, edges, mine, gathered);
                        if (third.try_test() != collx::status::pending)
                          throw std::runtime_error("the lane was free");
                        fourth.wait();
                        third.wait();
                        second.wait();
                        first.wait();
                        if (theirs != std::vector<int>(100, other + 7) || gathered != theirs)
                          throw std::runtime_error("a wrong message");
                        if (a.back() != 2.0f || b.back() != 2.0f) throw std::runtime_error("a wrong sum");
                      },
                      {.staging_bytes = 64 * 1024});
}
