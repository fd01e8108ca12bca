// SPDX-License-Identifier: Apache-2.0
// Ranks that have no memory left while they split: each allocation of one rank fails once, and it is told so
// by an error of collx, whichever it was.
// sanitizers: no, it replaces operator new itself
#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "watched.hpp"

namespace {

// How many allocations of this thread succeed before one fails; negative: all.
thread_local int until_none_is_left = -1;

__attribute__((noinline)) void* take(std::size_t bytes, std::size_t alignment) {
  if (until_none_is_left == 0) throw std::bad_alloc();
  if (until_none_is_left > 0) --until_none_is_left;
  void* const p = std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
__attribute__((noinline)) void give(void* p) noexcept { std::free(p); }

}  // namespace

void* operator new(std::size_t bytes) { return take(bytes, 16); }
void* operator new[](std::size_t bytes) { return take(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t a) { return take(bytes, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { give(p); }
void operator delete[](void* p) noexcept { give(p); }
void operator delete(void* p, std::size_t) noexcept { give(p); }
void operator delete[](void* p, std::size_t) noexcept { give(p); }
void operator delete(void* p, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give(p); }

namespace {

void require(bool fine, std::string const& what) {
  if (!fine) throw std::runtime_error(what);
}

// What a split of everybody says where `allocations` succeed; empty: there is a group.
std::string refusal(auto& world, int allocations) {
  until_none_is_left = allocations;
  try {
    auto group = world.split(0, 0);
    until_none_is_left = -1;
    return "";
  } catch (collx::error const& refused) {
    until_none_is_left = -1;
    require(refused.code() == collx::status::out_of_memory, refused.what());
    return refused.what();
  } catch (std::bad_alloc const&) {
    until_none_is_left = -1;
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
