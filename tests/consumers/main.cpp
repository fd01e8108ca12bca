// SPDX-License-Identifier: Apache-2.0
// The program that every way of consuming collx must build and run.
#include <cstdio>
#include <vector>

#include <collx/collx.hpp>

int main() {
  std::vector<float> v(1000, 0.5F);
  auto const codes =  // unwatched: a program as users write it
      collx::bootstrap::on_processes(2, [&](collx::communicator<collx::transport::shm>& world) {
        collx::all_reduce(world, std::span<float>(v), collx::sum);
        return v.front() == 1.0F && v.back() == 1.0F ? 0 : 1;
      });
  for (int const code : codes)
    if (code != 0) return 1;
  std::puts("consumer: ok");
}
