// SPDX-License-Identifier: Apache-2.0
// pmix_rank tcp|composite: one rank of those that a launcher with PMIx has started. Nothing says where rank 0
// is but the launcher.
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "collx/bootstrap/pmix.hpp"
#include "collx/collx.hpp"

namespace {

using tcp = collx::transport::tcp;
using shm_and_tcp = collx::transport::composite<collx::transport::shm, tcp>;

template <class Transport>
void run() {
  auto world = collx::connect_by_pmix<Transport>();
  std::vector<int> values(1000, world.rank() + 1);
  collx::all_reduce(world, std::span(values), collx::sum);
  for (int const value : values)
    if (value != world.size() * (world.size() + 1) / 2) throw std::runtime_error("a sum is wrong");
  if (world.rank() == 0) std::printf("%d ranks: all right\n", world.size());
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 2 && std::strcmp(argv[1], "composite") == 0) run<shm_and_tcp>();
  else run<tcp>();
} catch (std::exception const& failure) {
  std::printf("error: %s\n", failure.what());
  return 1;
}
