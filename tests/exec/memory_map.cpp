// SPDX-License-Identifier: Apache-2.0
// Which results go past the caches: large ones, unless the same buffers were used by the call before and
// are small enough that they still lie there.
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/collective/call.hpp"

namespace {

using schedule = collx::algo::direct_one_shot::all_reduce;
using arguments = collx::detail::invocation<collx::contract::all_reduce, std::byte, collx::sum_t>;

// A rank of two that calls again and again. Nothing is read or written.
struct caller {
  collx::exec::workspace work{2};

  bool streams(std::byte* output, std::size_t bytes, bool in_place = false) {
    arguments args;
    args.output = output;
    args.count = bytes;
    args.in_place = in_place;
    collx::problem const where{0, 2, 0};
    args.at.where = where;
    collx::detail::choice const how{&collx::exec::erased_schedule_of<schedule>, nullptr, nullptr, ""};
    auto const user = [&] { return collx::exec::buffers_of(collx::detail::scheduled(how, args), work); };
    return collx::exec::map_memory<schedule>(where, user, nullptr, bytes, 1, std::size_t{1} << 19).streams();
  }
};

}  // namespace

TEST_CASE("results that the caches hold are stored to them") {
  std::size_t const small = collx::device::stream_bytes_min();
  std::size_t const hot = collx::device::hot_bytes_max() / 2;  // for input and output
  REQUIRE(small < hot);
  std::vector<std::byte> memory(2);
  std::byte *const here = memory.data(), *const there = here + 1;

  caller rank;
  CHECK(rank.streams(there, small + 1));
  CHECK_FALSE(rank.streams(here, collx::device::remembered_bytes_min() - 1));
  CHECK(rank.streams(here, small + 1));  // small calls are not remembered
  CHECK_FALSE(rank.streams(here, small + 1));
  CHECK_FALSE(rank.streams(here, hot));
  CHECK(rank.streams(here, hot + 1));  // too large to stay
  CHECK(rank.streams(there, hot));
  CHECK_FALSE(rank.streams(there, small));
  CHECK_FALSE(rank.streams(there, hot));
  CHECK(rank.streams(here, hot));
  CHECK_FALSE(rank.streams(there, hot, true));
}
