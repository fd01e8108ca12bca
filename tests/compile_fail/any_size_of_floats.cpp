// SPDX-License-Identifier: Apache-2.0
// first error: use all_reduce_fixed_tree, or integers
#include <vector>

#include "collx/collx.hpp"

#ifdef FIXED
using element = int;
#else
using element = float;
#endif

void call(collx::communicator<collx::transport::threads>& comm, std::vector<element>& v) {
  collx::all_reduce<collx::reproducible<collx::reproducibility::any_size>>(comm, v);
}
