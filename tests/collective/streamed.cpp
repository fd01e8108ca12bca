// SPDX-License-Identifier: Apache-2.0
// Results that are stored past the caches, to the memory of others too: what is announced lies there. Blocks
// above the bounds from which that is done, and from which the library chooses algorithms that do it.
// compiled: as users do, since it is left out where nothing is optimised
#include <atomic>
#include <span>
#include <string>

#include <doctest/doctest.h>

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/explain.hpp"
#include "device/streaming.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;

constexpr std::size_t block_count = (300 << 10) / sizeof(std::uint32_t) + 3;

// The i-th element that a rank contributes to a call.
std::uint32_t element(rank_t rank, std::size_t i, int call) {
  return static_cast<std::uint32_t>(i) * 2654435761u + static_cast<std::uint32_t>(rank * 7 + call);
}

// Whether rank `r`'s block is what it contributed.
bool holds(std::uint32_t const* block, rank_t r, int call) {
  for (std::size_t i = 0; i < block_count; ++i)
    if (block[i] != element(r, i, call)) return false;
  return true;
}

// How far each rank's output lies behind the begin of its symmetric memory: alike in their lines, or not.
constexpr std::size_t begins[][3] = {{0, 0, 0}, {16, 16, 16}, {0, 1, 6}};

template <class World>
int gathers(World& world) {
  auto const mine = static_cast<std::size_t>(world.rank()), n = static_cast<std::size_t>(world.size());
  auto input = world.template allocate<std::uint32_t>(block_count);
  auto room = world.template allocate<std::uint32_t>(n * block_count + 64);
  int wrong = 0, call = 0;
  for (auto const& begin : begins)
    for (bool const in_place : {false, true})
      for (int turn = 0; turn < 3; ++turn, ++call) {
        std::span<std::uint32_t> const output(room.data() + begin[mine], n * block_count);
        std::span<std::uint32_t> const given =
            in_place ? output.subspan(mine * block_count, block_count) : std::span(input.data(), block_count);
        for (std::size_t i = 0; i < block_count; ++i) given[i] = element(world.rank(), i, call);
        collx::all_gather(world, given, output);
        for (rank_t r = 0; r < world.size(); ++r)
          wrong += !holds(output.data() + static_cast<std::size_t>(r) * block_count, r, call);
        collx::barrier(world);  // nobody overwrites an input, or an output, that another rank compares
      }
  return wrong;
}

template <class World>
int sums(World& world) {
  auto input = world.template allocate<std::uint32_t>(block_count);
  auto output = world.template allocate<std::uint32_t>(block_count);
  int wrong = 0;
  for (int call = 0; call < 3; ++call) {
    for (std::size_t i = 0; i < block_count; ++i) input[i] = element(world.rank(), i, call);
    collx::all_reduce(world, input, output);
    for (std::size_t i = 0; i < block_count; ++i) {
      std::uint32_t expected = 0;
      for (rank_t r = 0; r < world.size(); ++r) expected += element(r, i, call);
      wrong += output[i] != expected;
    }
  }
  return wrong;
}

template <class World>
bool is_right(World& world) {
  auto const choice = collx::tune::explain<collx::contract::all_gather>(world, block_count * 4);
  bool const pushes = std::string(choice.algorithm) == "push_pull";
  return gathers(world) == 0 && sums(world) == 0 && pushes;
}

}  // namespace

TEST_CASE("streamed: ranks that are threads see all of what others have stored to them") {
  say_if_nothing_is_streamed();
  collx::device::stream_bytes_min(4096);
  collx::device::result_cache({});
  for (rank_t const size : {2, 3}) {
    std::atomic<int> right{0};
    watched::on_threads(size, [&](auto& world) { right += is_right(world); });
    CHECK(right == size);
  }
}

TEST_CASE("streamed: ranks that are processes see all of what others have stored to them") {
  say_if_nothing_is_streamed();
  collx::device::stream_bytes_min(4096);
  collx::device::result_cache({});
  for (rank_t const size : {2, 3}) {
    collx::bootstrap::exit_codes const codes =
        watched::on_processes(size, [](auto& world) { return is_right(world) ? 0 : 1; });
    for (int const code : codes) CHECK(code == 0);
  }
}
