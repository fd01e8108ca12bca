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

template <char const* const& Network>
void kill_at_any_send() {
  using communicator = collx::communicator<typename over_ucx<Network>::transport>;
  for (std::uint64_t at_send = 1; at_send <= 12; ++at_send) {
    killing const how{4, static_cast<rank_t>(at_send % 4), at_send, 30'000};
    CAPTURE(at_send);
    kill_and_check<over_ucx<Network>>(how, "all_reduce", [&](communicator& comm) {
      std::vector<int> values(how.count);
      collx::all_reduce<collx::algo::ring>(comm, values);
    });
  }
}

}  // namespace

TEST_CASE("ucx over tcp: a rank killed at any of its sends is noticed") { kill_at_any_send<tcp>(); }

TEST_CASE("ucx over shared memory: a rank killed at any of its sends is noticed") { kill_at_any_send<any>(); }
