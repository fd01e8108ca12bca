// SPDX-License-Identifier: Apache-2.0
// The same and all that comes before it and after it: a program of one file, which connects and ends as well.
#include <atomic>
#include <span>
#include <vector>

#include "collx/bootstrap/connect.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/transport/shm.hpp"

int main() {
  auto world = collx::connect<collx::transport::shm>();
  std::vector<float> values(1000, 1.0f);
  collx::all_reduce(world, std::span(values), collx::sum);
}
