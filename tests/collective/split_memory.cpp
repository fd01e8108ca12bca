// SPDX-License-Identifier: Apache-2.0
// Ranks that have no memory left while they split: each allocation of one rank fails once, and it is told so
// by an error of collx, whichever it was.
// sanitizers: no, it replaces operator new itself
// compiled: apart, it replaces operator new
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "require.hpp"
#include "scarce_memory.hpp"
#include "watched.hpp"

namespace {

// What a split of everybody says where `allocations` succeed; empty: there is a group.
std::string refusal(auto& world, int allocations) {
  try {
    scarce_memory::allowance const few(allocations);
    auto group = world.split(0, 0);
    return "";
  } catch (collx::error const& refused) {
    require(refused.code() == collx::status::out_of_memory, refused.what());
    return refused.what();
  } catch (std::bad_alloc const&) {
    throw std::runtime_error("a std::bad_alloc after " + std::to_string(allocations) + " allocations");
  }
}

bool holds(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("split: a rank without memory is told so in words, at whichever allocation") {
  // Rank 1 counts up until there is enough; the others follow it by what it tells them.
  // Counted relaxed: read when the threads have been joined.
  std::atomic<int> told_alone{0}, told_all{0}, told_late{0};
  watched::on_threads(3, [&](auto& world) {
    bool enough = false;
    for (int allocations = 0; !enough; ++allocations) {
      require(allocations < 1000, "no end");
      std::string said = refusal(world, world.rank() == 1 ? allocations : -1);
      if (holds(said, "split again")) {  // the others are in their first one still
        told_alone.fetch_add(1, std::memory_order_relaxed);
        said = refusal(world, -1);
        require(said.empty(), said);
        said = "another try";
      } else if (holds(said, "which the other members have made")) {
        told_late.fetch_add(1, std::memory_order_relaxed);
      } else if (!said.empty()) {
        require(holds(said, "rank 1 has no memory left for its part of the group"), said);
        told_all.fetch_add(1, std::memory_order_relaxed);
      }
      int done = world.rank() == 1 && said.empty();
      collx::broadcast(world, std::span(&done, 1), 1);
      enough = done != 0;
    }
    require(world.failure().code == collx::status::ok, "the communicator failed");
  });
  CHECK(told_alone.load(std::memory_order_relaxed) >= 2);
  CHECK(told_all.load(std::memory_order_relaxed) >= 3);
  CHECK(told_late.load(std::memory_order_relaxed) >= 1);
}
