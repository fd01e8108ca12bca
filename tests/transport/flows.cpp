// SPDX-License-Identifier: Apache-2.0
// Messages spread over several flows that lose nothing but keep no order among each other: whatever the
// delays, messages end in order, once, and no flow has more than its share under way.
#include <deque>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "collx/transport/flows/flow_choice.hpp"
#include "collx/transport/flows/slice_window.hpp"

using collx::replayable_random;
using collx::transport::flows::flow_choice;
using collx::transport::flows::flow_limits;
using collx::transport::flows::sequence_mask;
using collx::transport::flows::slice_window;

namespace {

struct slice {
  std::uint32_t sequence;
  std::uint32_t bytes;
  std::uint64_t message;
  bool ends;
};

// One sender, one receiver, `limits.flows` queues between them of which a seed says which one moves.
struct network {
  network(flow_limits const& limits, std::uint32_t first, std::uint64_t seed)
      : choice(limits), window(first), next(first), random(seed),
        queues(static_cast<std::size_t>(limits.flows)) {}

  // Gives slices to flows until each has its share.
  void send(std::vector<std::uint32_t> const& messages) {
    while (at < messages.size()) {
      int const flow = choice.pick();
      if (flow < 0) return;
      std::uint32_t const rest = messages[at] - offset;
      std::uint32_t const bytes = rest < choice.limits().slice_bytes ? rest : choice.limits().slice_bytes;
      offset += bytes;
      bool const ends = offset == messages[at];
      queues[static_cast<std::size_t>(flow)].push_back({next, bytes, at, ends});
      next = (next + 1) & sequence_mask;
      choice.given(flow, bytes);
      REQUIRE(choice.slices_under_way(flow) <= choice.limits().slices_per_flow);
      REQUIRE(choice.bytes_under_way(flow) <=
              std::uint64_t{choice.limits().slices_per_flow} * choice.limits().slice_bytes);
      if (ends) ++at, offset = 0;
    }
  }

  // One flow, any, delivers its oldest slice.
  void deliver(std::vector<std::uint32_t>& missing) {
    std::size_t flow = random.below(static_cast<std::uint32_t>(queues.size()));
    while (queues[flow].empty()) flow = (flow + 1) % queues.size();
    slice const s = queues[flow].front();
    queues[flow].pop_front();
    REQUIRE(window.arrive(s.sequence, s.ends));
    REQUIRE_FALSE(window.arrive(s.sequence, s.ends));  // never twice
    choice.returned(static_cast<int>(flow), s.bytes);
    missing[s.message] -= s.bytes;
    // Complete, in order, and not one too early.
    std::uint64_t complete = 0;
    while (complete < missing.size() && missing[complete] == 0 && complete <= last_begun(s)) ++complete;
    REQUIRE(window.messages() <= complete);
    for (std::uint64_t m = 0; m < window.messages(); ++m) REQUIRE(missing[m] == 0);
  }
  [[nodiscard]] std::uint64_t last_begun(slice const&) const { return at; }
  [[nodiscard]] bool idle() const {
    for (auto const& q : queues)
      if (!q.empty()) return false;
    return true;
  }

  flow_choice choice;
  slice_window window;
  std::uint32_t next;
  replayable_random random;
  std::vector<std::deque<slice>> queues;
  std::uint64_t at = 0;
  std::uint32_t offset = 0;
};

}  // namespace

TEST_CASE("messages over flows with any delays end in order, from near the wrap of the sequence number on") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    replayable_random random(seed);
    flow_limits const limits{.flows = 1 + static_cast<int>(random.below(8)),
                             .slice_bytes = 1 + random.below(100),
                             .slices_per_flow = 1 + random.below(4)};
    std::uint32_t const first = (sequence_mask - random.below(40)) & sequence_mask;
    std::vector<std::uint32_t> messages(60);
    for (std::uint32_t& bytes : messages) bytes = random.below(3) == 0 ? 0 : random.below(500);
    std::vector<std::uint32_t> missing = messages;
    network net(limits, first, seed);
    net.send(messages);
    while (!net.idle()) {
      net.deliver(missing);
      net.send(messages);
    }
    CHECK(net.window.messages() == messages.size());
  }
}

TEST_CASE("a slice from far ahead or from before is refused, and changes nothing") {
  slice_window window(sequence_mask);
  CHECK_FALSE(window.arrive(sequence_mask - 1, true));                       // before
  CHECK_FALSE(window.arrive((sequence_mask + slice_window::capacity) & sequence_mask, true));
  CHECK(window.arrive((sequence_mask + slice_window::capacity - 1) & sequence_mask, true));
  CHECK(window.messages() == 0);
  CHECK(window.arrive(sequence_mask, true));
  CHECK(window.messages() == 1);
  CHECK_FALSE(window.arrive(sequence_mask, true));
}

TEST_CASE("a slow flow gets less: slices go where least is under way") {
  flow_choice choice({.flows = 2, .slice_bytes = 100, .slices_per_flow = 4});
  int given[2] = {};
  choice.given(0, 100);  // never comes back
  for (int i = 0; i < 10; ++i) {
    int const flow = choice.pick();
    choice.given(flow, 100);
    ++given[flow];
    if (flow == 1) choice.returned(1, 100);
  }
  CHECK(given[0] == 0);
  CHECK(given[1] == 10);
  for (int i = 0; i < 7; ++i) choice.given(choice.pick(), 100);
  CHECK(choice.pick() == -1);
}
