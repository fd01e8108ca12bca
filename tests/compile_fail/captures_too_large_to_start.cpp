// SPDX-License-Identifier: Apache-2.0
// first error: collx: the operator's captures are too large to be started; capture a pointer
#include <array>
#include <vector>

#include "collx/collective/all_reduce.hpp"
#include "collx/transport/threads.hpp"

void weighted(collx::communicator<collx::transport::threads>& comm, std::vector<int>& values,
              std::array<int, 1000> const& weights) {
#ifdef FIXED
  auto const op = [w = &weights](int a, int b) { return a + b * (*w)[0]; };
#else
  auto const op = [w = weights](int a, int b) { return a + b * w[0]; };
#endif
  collx::start::all_reduce(comm, values, op).wait();
}
