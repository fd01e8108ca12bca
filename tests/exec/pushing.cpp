// SPDX-License-Identifier: Apache-2.0
// Payloads that ranks store to each other's outputs: all that may be, where counts agree. Where they do not,
// nobody stores behind an output's end: collective/matrix_threads.cpp, matrix_shm.cpp.
#include "collx/exec/pushing.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/push_pull.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/multi_lane.hpp"
#include "collx/collective/reduce.hpp"
#include "transport/counting.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::algo::direct_two_shot;
using collx::algo::push_pull;

// One fragment, of which every rank's part is worth pushing.
constexpr std::size_t count = 3000;

void require(std::uint64_t is, rank_t should, char const* what) {
  if (is != static_cast<std::uint64_t>(should))
    throw std::runtime_error(std::string(what) + ": " + std::to_string(is) + ", not " +
                             std::to_string(should));
}

}  // namespace

TEST_CASE("pushing: ranks that are threads store every result that a schedule says may be stored") {
  using transport = counting<collx::transport::threads>;
  for (rank_t const size : {2, 3})
    watched::on_threads<transport>(size, [](collx::communicator<transport>& comm) {
      rank_t const others = comm.size() - 1, root = others;
      bool const is_root = comm.rank() == root;
      auto const n = static_cast<std::size_t>(comm.size());
      std::vector<int> in(count, 1), out(count), all(n * count);
      auto const& endpoint = comm.engine().endpoint();
      auto const stores = [&](char const* what, rank_t should, auto const& call) {
        std::uint64_t const before = endpoint.pushed();
        call();
        require(endpoint.pushed() - before, should, what);
      };
      stores("all_reduce", others, [&] { collx::all_reduce<direct_two_shot>(comm, in, out, collx::sum); });
      stores("all_reduce in place", others, [&] { collx::all_reduce<direct_two_shot>(comm, out); });
      stores("reduce", !is_root, [&] { collx::reduce<direct_two_shot>(comm, in, out, collx::sum, root); });
      stores("broadcast", is_root ? others : 0, [&] { collx::broadcast<push_pull>(comm, out, root); });
      stores("all_gather", others, [&] { collx::all_gather<push_pull>(comm, in, all); });
      stores("all_gather of parts of blocks", 2 * others,
             [&] { collx::all_gather<collx::multi_lane<push_pull, 2>>(comm, in, all); });
    });
}

TEST_CASE("pushing: of two processes, each has the system store to the other's private memory") {
  using transport = counting<collx::transport::shm>;
  collx::transport::settings chosen;
  chosen.single_copy_bytes = 1024;
  auto const codes = watched::on_processes<transport>(
      2,
      [](collx::communicator<transport>& comm) {
        std::vector<int> in(count, 1), out(count);
        auto& endpoint = comm.engine().endpoint();
        // Each has said by then whether it can.
        collx::all_reduce<direct_two_shot>(comm, in, out, collx::sum);
        if (!endpoint.fetchable(reinterpret_cast<std::byte*>(in.data()), 4 * count, 4 * count)) return 0;
        std::uint64_t const before = endpoint.posted();
        collx::all_reduce<direct_two_shot>(comm, in, out, collx::sum);
        require(endpoint.posted() - before, 1, "all_reduce");
        return 0;
      },
      chosen);
  for (int const code : codes) CHECK(code == 0);
}
