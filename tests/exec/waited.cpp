// SPDX-License-Identifier: Apache-2.0
// Reports say how long the call had waited, also where the wait ended by what came, and not by a time-out.
#include <atomic>
#include <span>
#include <thread>

#include <doctest/doctest.h>

#include "collx/collective/send_receive.hpp"
#include "collx/transport/threads.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using collx::status;

std::atomic<bool> rank_1_waits{false};

// Says when rank 1 looks around, as it does now and then while it waits.
template <class Endpoint>
struct telling_endpoint : Endpoint {
  using Endpoint::Endpoint;
  [[nodiscard]] status interrupted(collx::rank_t peer) noexcept {
    if (this->rank() == 1) rank_1_waits = true;
    return Endpoint::interrupted(peer);
  }
};

struct telling {
  using world = collx::transport::threads::world;
  using endpoint = telling_endpoint<collx::transport::threads::endpoint>;
  using membership = collx::transport::threads::membership_of<telling>;
};

}  // namespace

TEST_CASE("a report says how long was waited for a message of the wrong size") {
  watched::on_threads<telling>(2, [](collx::communicator<telling>& comm) {
    int const words[2] = {1, 2};
    int came[4] = {};
    if (comm.rank() == 0) {
      while (!rank_1_waits) std::this_thread::yield();
      for (std::uint64_t const seen_us = collx::now_us(); collx::now_us() < seen_us + 3;) {}
      (void)collx::try_send(comm, std::span(words), 1);
    } else {
      require(collx::try_receive(comm, std::span(came), 0) == status::mismatch, "not found to be shorter");
      require(comm.failure().elapsed_us > 0, "waited for 0 us");
    }
  });
}
