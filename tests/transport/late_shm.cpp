// SPDX-License-Identifier: Apache-2.0
// faulty<shm>: processes that see messages and credits late. A failing seed is printed; COLLX_SEED=number
// runs it alone, COLLX_SEEDS=count another number of them.
// thread sanitizer: no, each rank is a process of one thread
#include "transport/late_messages.hpp"
#include "watched.hpp"

namespace {

struct on_shm {
  using transport = collx::transport::faulty<collx::transport::shm>;
  template <class RankMain>
  static auto run(collx::rank_t size, RankMain const& rank_main) {
    return watched::on_processes<transport>(size, rank_main, {.staging_bytes = cases::staging_bytes});
  }
};

}  // namespace

TEST_CASE("shm: what comes late, and out of order between peers and lanes, changes no result") {
  seeds::for_each_seed(25, "test_transport_late_shm", late_messages::run<on_shm>);
}
