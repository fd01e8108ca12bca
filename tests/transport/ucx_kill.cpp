// SPDX-License-Identifier: Apache-2.0
// Processes that talk over UCX are killed in the middle of a collective: every survivor gets an error that
// names the collective, its number and the lost rank, within moments.
// ctest: TIMEOUT 300
// component: ucx
// sanitizers: no, UCX puts functions of its own in the place of the system's
#include "sample.hpp"
#include "transport/killing.hpp"
#include "ucx/start.hpp"

namespace {

using namespace killing_ranks;

// `Network`: UCX_TLS, or null for what UCX chooses.
template <char const* const& Network>
struct over_ucx {
  using transport = collx::transport::faulty<collx::transport::ucx>;
  template <class RankMain>
  static auto run(rank_t size, RankMain const& rank_main, collx::transport::settings const& chosen) {
    if (Network != nullptr) setenv("UCX_TLS", Network, 1);
    else unsetenv("UCX_TLS");
    return ucx_ranks::run<transport>(
        size, [&](collx::communicator<transport>& world, auto const&) { rank_main(world); }, chosen);
  }
};
char const* const tcp = "tcp";
char const* const any = nullptr;

}  // namespace

TEST_CASE("ucx over tcp: a rank killed at any of its sends, or before any of its receipts, is noticed") {
  kill_at_each<over_ucx<tcp>>(12);
}

TEST_CASE("ucx over shared memory: so is it there") { kill_at_each<over_ucx<any>>(8); }
