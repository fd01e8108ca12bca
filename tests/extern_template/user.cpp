// SPDX-License-Identifier: Apache-2.0
// Calls what another translation unit compiled, in every form and with every kind of range.
#include <array>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "collx/bootstrap/processes.hpp"
#include "compiled.hpp"
#include "watched.hpp"

namespace {

int sums_and_maxima(collx::communicator<program::shm>& world) {
  std::vector<float> const in(100, 1.0f);
  std::array<float, 100> out{};
  collx::all_reduce(world, in, out, collx::sum);
  if (out[99] != 2.0f) return 1;
  collx::all_reduce(world, std::span(out));
  if (out[0] != 4.0f) return 2;
  double largest[1] = {static_cast<double>(world.rank())};
  if (collx::try_all_reduce<collx::algo::direct_one_shot>(world, std::span(largest), collx::max) !=
      collx::status::ok)
    return 3;
  if (largest[0] != 1.0) return 4;
  collx::start::all_reduce(world, std::span(out)).wait();
  return out[50] == 8.0f ? 0 : 5;
}

}  // namespace

TEST_CASE("collectives compiled in another translation unit") {
  auto const codes = watched::on_processes(2, sums_and_maxima);
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("connect compiled in another translation unit") {
  auto alone = collx::connect<program::shm>();
  std::vector<float> one(1, 3.0f);
  collx::all_reduce(alone, one);
  CHECK(one[0] == 3.0f);
}
