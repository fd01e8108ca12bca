// SPDX-License-Identifier: Apache-2.0
// first error: collx: this operator is not commutative and this algorithm does not combine in rank order
#include <vector>

#include "collx/algo/recursive_doubling.hpp"
#include "collx/algo/ring.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/transport/threads.hpp"

#ifdef FIXED
using algorithm = collx::algo::recursive_doubling;
#else
using algorithm = collx::algo::ring;
#endif

void subtract(collx::communicator<collx::transport::threads>& comm, std::vector<int>& values) {
  collx::all_reduce<algorithm>(comm, values, collx::ordered([](int a, int b) { return a - b; }));
}
