// SPDX-License-Identifier: Apache-2.0
// The whole host library in a program that nvcc compiles: a CUDA program can include and use it.
#include <collx/collx.hpp>
#include <cstdio>
#include <vector>

int main() {
  // unwatched: a program as users write it
  collx::bootstrap::on_threads(2, [](collx::communicator<collx::transport::threads>& world) {
    std::vector<float> v(100, 1.0F);
    collx::all_reduce(world, std::span<float>(v), collx::sum);
    if (v[0] != 2.0F) throw v[0];
  });
  std::puts("host library under nvcc: ok");
  return 0;
}
