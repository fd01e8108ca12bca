// SPDX-License-Identifier: Apache-2.0
// first error: collx: the operator must be callable as T(T, T) for the element type, and trivially copyable
// shows: a call that names none has sum, which wants a + of two elements
#include <vector>

#include "collx/collective/all_reduce.hpp"
#include "collx/transport/threads.hpp"

struct point {
  int x, y;
};

#ifdef FIXED
inline constexpr auto add = [](point a, point b) { return point{a.x + b.x, a.y + b.y}; };
#else
inline constexpr auto add = collx::sum;
#endif

void total(collx::communicator<collx::transport::threads>& comm, std::vector<point>& values) {
  collx::all_reduce(comm, values, add);
}
