// SPDX-License-Identifier: Apache-2.0
// Ranks that share processors, and ranks that do not, whatever this machine has: what they choose reaches
// their calls, also those of groups made by split, and the results are the same.
// component: tcp
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/explain.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "collx/collective/split.hpp"
#include "require.hpp"
#include "transport/wired.hpp"

namespace {

using collx::rank_t;
using communicator = collx::communicator<collx::transport::tcp>;

collx::transport::tcp_settings settings(bool sharing) {
  collx::transport::tcp_settings chosen;
  chosen.common.timeout_us = 20'000'000;
  chosen.common.sharing = sharing;
  return chosen;
}

// Every collective that has rows for ranks that share, of a few elements and of some thousand.
void call_all(communicator& comm) {
  auto const n = static_cast<std::size_t>(comm.size());
  int const ranks = comm.size(), me = comm.rank(), sum = ranks * (ranks - 1) / 2;
  for (std::size_t const count : {std::size_t{1}, std::size_t{3000}}) {
    std::vector<int> one(count, me), many(count * n, me), out(count), all(count * n);
    collx::all_reduce(comm, std::span<int const>(one), std::span(out));
    require(out == std::vector<int>(count, sum), "all_reduce");
    collx::reduce_scatter(comm, std::span<int const>(many), std::span(out));
    require(out == std::vector<int>(count, sum), "reduce_scatter");
    collx::all_gather(comm, std::span<int const>(one), std::span(all));
    for (std::size_t i = 0; i < all.size(); ++i) require(all[i] == static_cast<int>(i / count), "all_gather");
    collx::all_to_all(comm, std::span<int const>(many), std::span(all));
    for (std::size_t i = 0; i < all.size(); ++i) require(all[i] == static_cast<int>(i / count), "all_to_all");
    for (rank_t root : {0, ranks - 1}) {
      std::vector<int> told(count, me);
      collx::broadcast(comm, std::span(told), root);
      require(told == std::vector<int>(count, root), "broadcast");
      out.assign(count, -1);
      collx::reduce(comm, std::span<int const>(one), std::span(out), collx::sum, root);
      if (me == root) require(out == std::vector<int>(count, sum), "reduce");
    }
    collx::barrier(comm);
  }
}

std::string chosen_for_all_reduce(communicator& comm) {
  return collx::tune::explain<collx::contract::all_reduce>(comm, 8).algorithm;
}

}  // namespace

TEST_CASE("tcp: ranks that share processors, and ranks that do not, choose and are right") {
  for (rank_t const size : {2, 3, 4, 5, 8, 9})
    for (bool const sharing : {false, true}) {
      CAPTURE(size);
      CAPTURE(sharing);
      wired::on_wired_threads(size, settings(sharing), [&](communicator& comm) {
        require(comm.engine().endpoint().is_sharing() == sharing, "the setting is lost");
        std::string const without = size <= 4 ? "direct_one_shot" : "recursive_doubling";
        std::string const expected = sharing && size > 2 && size <= 8 ? "binomial_tree" : without;
        require(chosen_for_all_reduce(comm) == expected, "another algorithm is explained");
        call_all(comm);
      });
    }
}

TEST_CASE("tcp: a group of ranks that share processors chooses as they do") {
  for (bool const sharing : {false, true})
    wired::on_wired_threads(6, settings(sharing), [&](communicator& comm) {
      communicator group = comm.split(comm.rank() / 3, comm.rank());
      require(chosen_for_all_reduce(group) == (sharing ? "binomial_tree" : "direct_one_shot"),
              "a group chooses otherwise");
      call_all(group);
    });
}

TEST_CASE("tcp: ranks that share processors yield at once where they wait") {
  for (bool const sharing : {false, true})
    wired::on_wired_threads(2, settings(sharing), [&](communicator& comm) {
      require((comm.engine().wakefulness().spins == 0) == sharing, "they spin");
      collx::barrier(comm);
    });
}
