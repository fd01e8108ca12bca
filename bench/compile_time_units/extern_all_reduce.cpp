// SPDX-License-Identifier: Apache-2.0
// The whole program where another source file compiles the library's part: the recipe of
// docs/compile_time.md.
#include <atomic>
#include <span>
#include <vector>

#include "collx/bootstrap/connect.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/transport/shm.hpp"

using collx::transport::shm;
extern template class collx::communicator<shm>;
extern template collx::communicator<shm> collx::connect<shm>(collx::transport::settings const&);
extern template struct collx::compiled_collective<collx::contract::all_reduce, float, collx::sum_t,
                                                  shm::endpoint, collx::automatic>;

int main() {
  auto world = collx::connect<shm>();
  std::vector<float> values(1000, 1.0f);
  collx::all_reduce(world, std::span(values), collx::sum);
}
