// SPDX-License-Identifier: Apache-2.0
// Several requests in flight cost no more, each, than one at a time: in messages, and in looks for messages.
// One thread is both ranks, so that everything can be counted.
#include <doctest/doctest.h>

#include <array>
#include <span>
#include <vector>

#include "collx/collective/all_reduce.hpp"
#include "collx/transport/threads.hpp"

namespace {

using collx::rank_t;

// Counts what is sent, and how often somebody asks whether a message is there.
template <class Endpoint>
class observed_endpoint : public Endpoint {
 public:
  using Endpoint::Endpoint;

  void send(int lane, rank_t peer, std::byte const* payload, std::size_t bytes,
            collx::transport::handover how) noexcept {
    ++messages_;
    Endpoint::send(lane, peer, payload, bytes, how);
  }
  [[nodiscard]] bool arrived(int lane, rank_t peer, collx::transport::arrival& what) noexcept {
    ++looks_;
    return Endpoint::arrived(lane, peer, what);
  }

  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }
  [[nodiscard]] std::uint64_t looks() const noexcept { return looks_; }

 private:
  std::uint64_t messages_ = 0, looks_ = 0;
};

struct observed {
  using world = collx::transport::threads_world;
  using endpoint = observed_endpoint<collx::transport::threads::endpoint>;
  using membership = collx::transport::threads::membership_of<observed>;
};
using communicator = collx::communicator<observed>;
using request = collx::request<observed::endpoint>;

constexpr int calls = 64;

struct cost {
  std::uint64_t messages = 0, looks = 0;
};

// `calls` all_reduces on both ranks, of which up to `window` are in flight.
cost run(std::size_t count, int window) {
  auto* const world = new collx::transport::threads_world(2, {.staging_bytes = 64 * 1024});
  cost total;
  {
    std::array<communicator, 2> ranks{collx::transport::threads::join<observed>(*world, 0),
                                      collx::transport::threads::join<observed>(*world, 1)};
    std::vector<std::vector<float>> vectors(2 * static_cast<std::size_t>(window));
    for (auto& each : vectors) each.assign(count, 1);
    std::vector<request> flying(vectors.size());
    int finished = 0;
    for (int i = 0; i < calls; ++i) {
      std::size_t const slot = static_cast<std::size_t>(i % window) * 2;
      // Tests move everything of their rank along: both ranks in turns.
      for (bool done = false; !done;) {
        bool const first = flying[slot].test(), second = flying[slot + 1].test();
        done = first && second;
      }
      finished += i >= window;
      for (std::size_t r = 0; r < 2; ++r)
        flying[slot + r] = collx::start::all_reduce(ranks[r], std::span(vectors[slot + r]));
    }
    for (bool pending = true; pending;) {
      pending = false;
      for (request& each : flying) pending = !each.test() || pending;
    }
    CHECK(finished == calls - window);
    for (communicator& rank : ranks) {
      total.messages += rank.engine().endpoint().messages();
      total.looks += rank.engine().endpoint().looks();
    }
  }
  world->drop();
  return total;
}

}  // namespace

TEST_CASE("in flight: no request costs more messages, or looks, than if it were alone") {
  // One letter; staged; many fragments.
  for (std::size_t const count : {std::size_t{2}, std::size_t{1024}, std::size_t{65536}}) {
    CAPTURE(count);
    cost const alone = run(count, 1);
    CHECK(alone.messages > 0);
    for (int const window : {2, 4, 8}) {
      CAPTURE(window);
      cost const together = run(count, window);
      CHECK(together.messages == alone.messages);
      CHECK(together.looks <= alone.looks);
    }
  }
}
