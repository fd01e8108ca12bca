// SPDX-License-Identifier: Apache-2.0
// faulty<tcp>: processes that see messages and credits late. A failing seed is printed; COLLX_SEED=number
// runs it alone, COLLX_SEEDS=count another number of them.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include "transport/late_messages.hpp"
#include "watched_tcp.hpp"

namespace {

struct on_tcp {
  using transport = collx::transport::faulty<collx::transport::tcp>;
  template <class RankMain>
  static auto run(collx::rank_t size, RankMain const& rank_main) {
    auto chosen = collx::transport::tcp_settings::from_environment();
    chosen.common.staging_bytes = cases::staging_bytes;
    return watched::on_tcp_processes<transport>(size, rank_main, chosen);
  }
};

}  // namespace

TEST_CASE("tcp: what comes late, and out of order between peers and lanes, changes no result") {
  seeds::for_each_seed(12, "test_transport_late_tcp", late_messages::run<on_tcp>);
}
