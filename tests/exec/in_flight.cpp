// SPDX-License-Identifier: Apache-2.0
// Several requests in flight cost no more, each, than one at a time: in messages, and in looks for messages.
// Each has the sum of its own call, and they are in flight together.
// One thread is both ranks, so that everything can be counted.
#include <doctest/doctest.h>

#include <algorithm>
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
  int at_once = 0;  // the most requests of rank 0 that were in flight
};

// What rank r gives for element i of the call-th all_reduce, and what the sum of both is: no two calls'
// are alike.
float given(std::size_t r, int call, std::size_t i) {
  return static_cast<float>(static_cast<int>(i % 61) + 1000 * call + 500 * static_cast<int>(r));
}
float sum_of(int call, std::size_t i) { return given(0, call, i) + given(1, call, i); }

// `calls` all_reduces on both ranks, of which up to `window` are in flight.
cost run(std::size_t count, int window) {
  auto* const world = new collx::transport::threads_world(2, {.staging_bytes = 64 * 1024});
  cost total;
  {
    std::array<communicator, 2> ranks{collx::transport::threads::join<observed>(*world, 0),
                                      collx::transport::threads::join<observed>(*world, 1)};
    std::vector<std::vector<float>> vectors(2 * static_cast<std::size_t>(window));
    for (auto& each : vectors) each.resize(count);
    std::vector<request> flying(vectors.size());
    std::vector<int> call_of(static_cast<std::size_t>(window), -1);  // which one flies there
    int finished = 0;
    auto const finish = [&](int slot) {
      auto const at = static_cast<std::size_t>(slot) * 2;
      // Tests move everything of their rank along: both ranks in turns.
      for (bool done = false; !done;) {
        bool const first = flying[at].test(), second = flying[at + 1].test();
        done = first && second;
      }
      int& call = call_of[static_cast<std::size_t>(slot)];
      if (call < 0) return;
      // Each has the sum of its own call, on both ranks, whatever others flew beside it.
      for (std::size_t r = 0; r < 2; ++r) {
        std::vector<float> const& sums = vectors[at + r];
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) wrong += sums[i] != sum_of(call, i);
        CHECK(wrong == 0);
      }
      call = -1;
      ++finished;
    };
    for (int i = 0; i < calls; ++i) {
      int const slot = i % window;
      auto const at = static_cast<std::size_t>(slot) * 2;
      finish(slot);
      for (std::size_t r = 0; r < 2; ++r) {
        for (std::size_t e = 0; e < count; ++e) vectors[at + r][e] = given(r, i, e);
        flying[at + r] = collx::start::all_reduce(ranks[r], std::span(vectors[at + r]));
      }
      call_of[static_cast<std::size_t>(slot)] = i;
      int pending = 0;
      ranks[0].engine().for_each_in_flight([&](auto const&...) { ++pending; });
      total.at_once = std::max(total.at_once, pending);
    }
    for (int slot = 0; slot < window; ++slot) finish(slot);
    CHECK(finished == calls);
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
      // What takes many turns is not done before the next ones begin.
      if (count == 65536) CHECK(together.at_once == window);
    }
  }
}
