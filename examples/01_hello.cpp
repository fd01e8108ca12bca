// SPDX-License-Identifier: Apache-2.0
// Four processes add up their rank numbers.
#include <cstdio>

#include <collx/bootstrap/local.hpp>
#include <collx/collective/all_reduce.hpp>

int main() {
  auto const codes = collx::bootstrap::on_processes(4, [](auto& world) {
    int sum = world.rank();
    collx::all_reduce(world, std::span(&sum, 1), collx::sum);
    std::printf("rank %d of %d: the ranks add up to %d\n", world.rank(), world.size(), sum);
  });
  for (int code : codes)
    if (code != 0) return code;
}
