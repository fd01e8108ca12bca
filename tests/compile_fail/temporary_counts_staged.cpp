// SPDX-License-Identifier: Apache-2.0
// first error: collx: a buffer that is started with must stay until wait() returns; give it a name
#include <vector>

#include "collx/collective/staged_all_to_all_v.hpp"
#include "collx/transport/threads.hpp"

void shuffle(collx::communicator<collx::transport::threads>& near,
             collx::communicator<collx::transport::threads>& far, std::vector<float>& in,
             std::vector<float>& packed, std::vector<float>& gathered, std::vector<float>& out,
             std::vector<std::size_t> const& counts) {
  auto const from = collx::blocks{gathered, counts}, to = collx::blocks{out, counts};
#ifdef FIXED
  collx::start::staged_all_to_all_v(near, far, collx::blocks{in, counts}, packed, from, from, to).wait();
#else
  collx::start::staged_all_to_all_v(near, far, collx::blocks{in, std::vector<std::size_t>{1, 2}}, packed,
                                    from, from, to)
      .wait();
#endif
}
