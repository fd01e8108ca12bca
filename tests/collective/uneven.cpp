// SPDX-License-Identifier: Apache-2.0
// The collectives whose blocks have counts of their own, with every algorithm, on threads and processes
// (messages.cpp has other transports); wrong arguments, and counts that disagree.
#include <doctest/doctest.h>

#include "collective/uneven_calls.hpp"
#include "collx/algo/all.hpp"
#include "collx/bootstrap/local.hpp"
#include "sample.hpp"
#include "watched.hpp"

namespace {

using collx::blocks;
using collx::rank_t;
using uneven::counts_t;
constexpr auto every_pattern = uneven::every_pattern<sample::algorithms>;

// The name of the argument, and that nothing was sent: the next call works.
template <class Call>
void refuses(char const* what, Call const& call) {
  try {
    call();
  } catch (collx::error const& refused) {
    if (refused.code() != collx::status::bad_argument) throw;
    if (std::string(refused.what()).find(what) == std::string::npos)
      throw std::runtime_error(std::string("says \"") + refused.what() + "\" instead of " + what);
    return;
  }
  throw std::runtime_error(std::string("accepted: ") + what);
}

}  // namespace

TEST_CASE("uneven: every algorithm that takes uneven blocks, on threads") {
  for (rank_t const size : {1, 2, 3, 4, 5, 8})
    watched::on_threads(size, every_pattern, {.staging_bytes = 64 * 1024});
}

TEST_CASE("uneven: and on processes") {
  for (rank_t const size : {2, 3, 5})
    for (int const code : watched::on_processes(size, every_pattern, {.staging_bytes = 64 * 1024}))
      CHECK(code == 0);
}

TEST_CASE("uneven: wrong arguments are named, and change nothing") {
  watched::on_threads(2, [](auto& comm) {
    std::vector<int> in(10), out(10);
    counts_t const fits{5, 5}, too_many{5, 6}, three{3, 3, 3}, huge{5, ~std::size_t{0}};
    counts_t const apart{0, 5}, overlapping{0, 4}, far{0, ~std::size_t{0} - 2};
    auto const call = [&](auto const& given, auto const& taken) { collx::all_to_all_v(comm, given, taken); };
    blocks<int const> const good_in{in, fits};
    refuses("the output needs a count", [&] { call(good_in, blocks<int>{out, three}); });
    refuses("behind the end of the output", [&] { call(good_in, blocks<int>{out, too_many}); });
    refuses("behind the end of the output", [&] { call(good_in, blocks<int>{out, huge}); });
    refuses("behind the end of the output", [&] { call(good_in, blocks<int>{out, fits, far}); });
    refuses("two blocks of the output overlap", [&] { call(good_in, blocks<int>{out, fits, overlapping}); });
    refuses("no in-place form", [&] { call(blocks<int const>{out, fits}, blocks<int>{out, fits}); });
    refuses("as many elements as it takes from itself", [&] {
      call(good_in, blocks<int>{out, comm.rank() == 0 ? counts_t{4, 5} : counts_t{5, 4}});
    });
    refuses("own block", [&] { collx::all_gather_v(comm, in, blocks<int>{out, fits}); });
    refuses("the root", [&] { collx::gather_v(comm, in, blocks<int>{out, fits}, 2); });
    call(good_in, blocks<int>{out, fits, apart});
  });
}

TEST_CASE("uneven: counts that disagree end in an error that names the peer and the bytes") {
  watched::on_threads(2, [](auto& comm) {
    std::vector<int> in(20), out(20);
    counts_t const mine = comm.rank() == 0 ? counts_t{2, 8} : counts_t{3, 2};
    counts_t const theirs = comm.rank() == 0 ? counts_t{2, 3} : counts_t{9, 2};  // rank 1 expects 9 of rank 0
    collx::status const outcome =
        collx::try_all_to_all_v(comm, blocks<int const>{in, mine}, blocks<int>{out, theirs});
    if (comm.rank() == 1) {
      if (outcome != collx::status::mismatch) throw std::runtime_error("no mismatch");
      if (comm.failure().peer != 0 || comm.failure().bytes != 36 || comm.failure().peer_bytes != 32)
        throw std::runtime_error("a wrong report");
    } else if (outcome != collx::status::ok && outcome != collx::status::aborted) {
      throw std::runtime_error("neither ok nor aborted");
    }
  });
}

TEST_CASE("uneven: along an axis, whose ranks have fewer counts than the world has ranks") {
  watched::on_threads(6, [](auto& world) {
    auto column = world.along({world.rank() % 3, 3, 2});  // ranks r and r + 3
    // As long as they need be: what reads on is seen under the address sanitizer.
    counts_t const counts{2, 3};
    std::vector<int> own(counts[static_cast<std::size_t>(column.rank())], world.rank()), all(5, -1);
    collx::all_gather_v(column, own, blocks<int>{all, counts});
    int const low = world.rank() % 3;
    if (all != std::vector<int>{low, low, low + 3, low + 3, low + 3})
      throw std::runtime_error("all_gather_v");
    counts_t const mine(2, own.size());
    std::vector<int> out(2 * own.size(), -1);
    collx::all_to_all_v(column, blocks<int>{all, counts}, blocks<int>{out, mine});
    collx::start::all_to_all_v(column, blocks<int>{all, counts}, blocks<int>{out, mine}).wait();
    if (out != std::vector<int>(2 * own.size(), low + (column.rank() == 0 ? 0 : 3)))
      throw std::runtime_error("all_to_all_v");
  });
}
