// SPDX-License-Identifier: Apache-2.0
// What bench/compile_time measures: a translation unit with one all_reduce over shared memory, as a program
// of several source files has it: the one with main() connects.
#include <atomic>
#include <span>
#include <vector>

#include "collx/collective/all_reduce.hpp"
#include "collx/transport/shm.hpp"

void add_up(collx::communicator<collx::transport::shm>& world, std::vector<float>& values) {
  collx::all_reduce(world, std::span(values), collx::sum);
}
