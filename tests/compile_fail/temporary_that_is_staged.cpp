// SPDX-License-Identifier: Apache-2.0
// first error: collx: a buffer that is started with must stay until wait() returns; give it a name
#include <span>
#include <vector>

#include "collx/collective/staged_all_to_all.hpp"
#include "collx/transport/threads.hpp"

using communicator = collx::communicator<collx::transport::threads>;

void begin(communicator& near, communicator& far, std::vector<int>& in, std::vector<int>& out) {
  std::vector<int> gathered(in.size());
#ifdef FIXED
  std::vector<int> produced(in.size());
  collx::start::staged_all_to_all(near, far, in, gathered, produced, out).wait();
#else
  collx::start::staged_all_to_all(near, far, in, gathered, std::vector<int>(in.size()), out).wait();
#endif
}
