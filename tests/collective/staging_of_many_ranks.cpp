// SPDX-License-Identifier: Apache-2.0
// Fragments that stage many small payloads: with private buffers of so many ranks each of them is at
// most a page, and together they are more than the part of the ring in which small payloads turn round.
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/ring.hpp"
#include "collx/bootstrap/processes.hpp"
#include "collx/collective/all_reduce.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;

// Several calls, so that fragments of one follow those of another in the ring.
template <class Algorithm>
void check(rank_t size, std::size_t chunk_bytes) {
  auto const codes = watched::on_processes(size, [&](collx::communicator<collx::transport::shm>& comm) {
    for (std::size_t const bytes : {chunk_bytes, 8 * chunk_bytes, chunk_bytes, chunk_bytes / 8}) {
      std::vector<char> v(bytes * static_cast<std::size_t>(size), 1);
      collx::all_reduce<Algorithm>(comm, v);
      if (v.back() != static_cast<char>(size)) throw std::runtime_error("wrong sum");
    }
  });
  for (int const code : codes) CHECK(code == 0);
}

}  // namespace

TEST_CASE("a fragment of many small payloads fits its staging memory") {
  for (rank_t const size : {9, 10, 12, 18, 33}) {
    CAPTURE(size);
    check<collx::algo::ring>(size, 4096);
    check<collx::algo::direct_two_shot>(size, 4096);
  }
}
