// SPDX-License-Identifier: Apache-2.0
// Which results go past the caches: large ones, unless the same buffers were used by the call before and
// are small enough that they still lie there.
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/push_pull.hpp"
#include "collx/collective/call.hpp"

namespace {

using direct = collx::algo::direct_one_shot;

// A rank that calls again and again. Nothing is read or written.
template <class Schedule>
struct caller {
  using arguments = collx::detail::invocation<typename Schedule::contract, std::byte, collx::sum_t>;

  collx::exec::workspace work{2};
  std::byte* input = nullptr;

  // `bytes`: of a block.
  bool streams(std::byte* output, std::size_t bytes, bool in_place = false, collx::rank_t size = 2) {
    arguments args;
    args.input = input;
    args.output = output;
    args.count = bytes;
    args.in_place = in_place;
    collx::problem const where{0, size, 0};
    args.at.where = where;
    collx::detail::choice const how{&collx::exec::erased_schedule_of<Schedule>, nullptr, nullptr, ""};
    return collx::exec::map_memory(collx::detail::scheduled(how, args), work, nullptr, std::size_t{1} << 19)
        .streams();
  }
};

// What a test says of the caches is forgotten when it ends.
struct caches {
  ~caches() { collx::device::result_cache(before); }
  collx::device::cpu::shared_cache const before = collx::device::result_cache();
};

}  // namespace

TEST_CASE("results that the caches hold are stored to them") {
  std::size_t const small = collx::device::stream_bytes_min();
  std::size_t const hot = collx::device::hot_bytes_max() / 2;  // for input and output
  REQUIRE(small < hot);
  std::vector<std::byte> memory(2);
  std::byte *const here = memory.data(), *const there = here + 1;

  caches const unchanged;
  collx::device::result_cache({});
  caller<direct::all_reduce> rank;
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

TEST_CASE("results that fit a part of a cache which takes stores well are stored to it") {
  caches const unchanged;
  std::size_t const least = collx::device::stream_bytes_min();
  std::size_t const cache = 1024 * least;
  collx::device::result_cache({cache, 4});
  std::vector<std::byte> memory(2);
  std::byte *const here = memory.data(), *const there = here + 1;

  // Copies: one block given and two taken, of two ranks.
  std::size_t const quarter = cache / 4 / 2 / 3;
  caller<direct::all_gather> rank;
  CHECK_FALSE(rank.streams(here, quarter));
  CHECK(rank.streams(there, quarter + 1));
  CHECK_FALSE(rank.streams(there, 3 * quarter));
  CHECK(rank.streams(there, 3 * quarter + 3));
  // All of a quarter is too much, all of three quarters is not: two blocks given, two taken.
  caller<direct::all_to_all> all;
  std::size_t const whole = cache / 4 / 2 / 4;
  CHECK(all.streams(here, whole));
  CHECK_FALSE(all.streams(here, 3 * whole));
  CHECK(all.streams(here, 3 * whole + 1));
  // Of more ranks there are more blocks, but only as many share the cache as processors do.
  CHECK_FALSE(rank.streams(here, cache / 4 / 4 / 9, false, 8));
  CHECK(rank.streams(there, cache / 4 / 4 / 9 + 1, false, 8));

  // What is combined only where it is used again.
  caller<direct::all_reduce> sum;
  std::size_t const half = cache / 2 / 2 / 2;
  CHECK(sum.streams(here, least + 1));
  CHECK_FALSE(sum.streams(here, half));
  CHECK(sum.streams(here, half + 1));
}

// What it stores to is the root's, of whose calls it knows nothing: they come again where its own input does.
TEST_CASE("results of a rank without an output are stored to the caches if its input comes again") {
  caches const unchanged;
  std::size_t const least = collx::device::stream_bytes_min();
  collx::device::result_cache({1024 * least, 4});
  std::vector<std::byte> memory(2);
  caller<direct::reduce> rank;
  rank.input = memory.data();
  CHECK(rank.streams(nullptr, least + 1));
  CHECK_FALSE(rank.streams(nullptr, least + 1));
  rank.input = memory.data() + 1;
  CHECK(rank.streams(nullptr, least + 1));
}

// The largest vectors of which ranks that share processors fetch blocks, where the last call had others.
TEST_CASE("ranks that share processors leave to receivers what is not combined and fits the caches") {
  std::vector<std::byte> memory(1);
  auto const lets_fetch = [&]<class Schedule>(collx::rank_t size, std::size_t block_bytes) {
    using arguments = collx::detail::invocation<typename Schedule::contract, std::byte, collx::sum_t>;
    collx::exec::workspace work{size};
    arguments args;
    args.input = args.output = memory.data();
    args.count = block_bytes;
    args.at.where = collx::problem{0, size, 0};
    collx::detail::choice const how{&collx::exec::erased_schedule_of<Schedule>, nullptr, nullptr, ""};
    auto map = collx::exec::map_memory(collx::detail::scheduled(how, args), work, nullptr, 1u << 19);
    map.fetch_as_crowded();
    return map.lets_fetch();
  };
  std::size_t const cache = collx::device::fetched_bytes_max() / 2;
  for (collx::rank_t const size : {2, 3, 4, 5, 8, 64}) {
    CAPTURE(size);
    auto const ranks = static_cast<std::size_t>(size);
    std::size_t const most = (size <= 4 ? cache : cache / 4) / ranks;
    CHECK(lets_fetch.operator()<direct::all_to_all>(size, most));
    CHECK_FALSE(lets_fetch.operator()<direct::all_to_all>(size, most + 1));
    CHECK(lets_fetch.operator()<direct::all_gather>(size, most));
    CHECK_FALSE(lets_fetch.operator()<direct::all_gather>(size, most + 1));
    CHECK(lets_fetch.operator()<direct::broadcast>(size, cache) == (size <= 4));
    CHECK(lets_fetch.operator()<direct::broadcast>(size, 1) == (size <= 4));
    CHECK_FALSE(lets_fetch.operator()<direct::broadcast>(size, cache + 1));
    CHECK_FALSE(lets_fetch.operator()<direct::reduce_scatter>(size, 1));
  }
}

// What is combined, or goes to everybody, of any length that is fetched at all; other blocks, and vectors of
// which both sides copy a half, while they are small.
TEST_CASE("which inputs are staged if the program writes them before each call") {
  std::size_t const least = collx::device::remembered_bytes_min();
  std::size_t const most = collx::device::fetched_bytes_max();
  std::size_t const unit = collx::device::stream_bytes_min();
  std::vector<std::byte> memory(1);
  auto const stages = [&]<class Schedule>(std::size_t bytes, collx::rank_t rank = 0, bool in_place = false) {
    using arguments = collx::detail::invocation<typename Schedule::contract, std::byte, collx::sum_t>;
    collx::exec::workspace work{2};
    arguments args;
    args.input = args.output = memory.data();
    args.count = bytes;
    args.in_place = in_place;
    collx::problem const where{rank, 2, 0};
    args.at.where = where;
    collx::detail::choice const how{&collx::exec::erased_schedule_of<Schedule>, nullptr, nullptr, ""};
    auto map = collx::exec::map_memory(collx::detail::scheduled(how, args), work, nullptr, 1u << 19);
    bool const staged = map.stages_if_rewritten();
    map.stage_payloads();
    CHECK_FALSE(map.lets_fetch());
    return staged;
  };
  using halves = collx::algo::push_pull;
  using two_shots = collx::algo::direct_two_shot;
  for (auto const& [bytes, as_small] : {std::pair{least - 1, false}, {least, true}, {most, false}}) {
    CAPTURE(bytes);
    CHECK(stages.operator()<direct::all_gather>(bytes) == (bytes >= least));
    CHECK(stages.operator()<direct::reduce_scatter>(bytes) == (bytes >= least));
    CHECK(stages.operator()<direct::all_to_all>(bytes) == as_small);
    CHECK(stages.operator()<two_shots::all_reduce>(bytes) == as_small);
    CHECK(stages.operator()<halves::broadcast>(bytes) == as_small);
    CHECK_FALSE(stages.operator()<halves::broadcast>(bytes, 1));  // has no input
  }
  CHECK_FALSE(stages.operator()<direct::all_gather>(most + 1));  // staged anyway
  // A sum in place changes by itself.
  CHECK_FALSE(stages.operator()<two_shots::all_reduce>(least, 0, true));
  CHECK(stages.operator()<direct::reduce_scatter>(least, 0, true));
  CHECK(stages.operator()<halves::broadcast>(least, 0, true));
  CHECK(stages.operator()<direct::all_to_all>(2 * unit - 1));
  CHECK_FALSE(stages.operator()<direct::all_to_all>(2 * unit));
  CHECK(stages.operator()<halves::broadcast>(8 * unit - 1));
  CHECK_FALSE(stages.operator()<halves::broadcast>(8 * unit));
  // However small the caches are said to be.
  collx::device::stream_bytes_min(64);
  CHECK_FALSE(stages.operator()<direct::all_gather>(collx::exec::input_history::bytes_min - 1));
  CHECK(stages.operator()<direct::all_gather>(collx::exec::input_history::bytes_min));
  collx::device::stream_bytes_min(unit);
}

TEST_CASE("inputs are compared where their blocks follow each other, and all have one length") {
  using gather = direct::all_gather;
  std::vector<std::byte> memory(1);
  std::vector<std::size_t> const counts(2, 1 << 16);
  collx::exec::scheduled_call plain;
  plain.schedule = &collx::exec::erased_schedule_of<gather>;
  plain.contract = &collx::exec::erased_contract_of<gather::contract>;
  plain.input = plain.output = memory.data();
  plain.count = counts[0];
  plain.what.at.where = {1, 2, 0};
  auto const bytes_of = [](collx::exec::scheduled_call const& call) {
    collx::exec::workspace work(2);
    return collx::exec::map_memory(call, work, nullptr, 1u << 19).input_bytes();
  };
  CHECK(bytes_of(plain) == counts[0]);
  collx::exec::scheduled_call apart = plain, uneven = plain;
  apart.block_pitch = counts[0] + 1;
  uneven.tables.input.counts = counts.data();
  CHECK(bytes_of(apart) == 0);
  CHECK(bytes_of(uneven) == 0);
}

TEST_CASE("a map that is kept serves calls that differ in their buffers, and no others") {
  using gather = collx::algo::direct_one_shot::all_gather;
  std::vector<std::byte> memory(64);
  collx::exec::workspace used(3);
  // In one fragment, and in several.
  for (int round = 0; round < 2; ++round)
    for (std::size_t const count : {std::size_t{8}, std::size_t{4096}, std::size_t{1} << 20})
      for (std::size_t const element : {std::size_t{1}, std::size_t{4}})
        for (collx::rank_t const size : {2, 3})
          for (bool const in_place : {false, true}) {
            CAPTURE(count);
            CAPTURE(element);
            CAPTURE(size);
            CAPTURE(in_place);
            collx::exec::scheduled_call call;
            call.schedule = &collx::exec::erased_schedule_of<gather>;
            call.contract = &collx::exec::erased_contract_of<gather::contract>;
            call.input = memory.data() + round;
            call.output = memory.data() + 8 * (round + 1);
            call.count = count;
            call.element_bytes = element;
            call.in_place = in_place;
            call.what.at.where = {1, size, 0};
            collx::exec::workspace fresh(3);
            constexpr std::size_t staging = std::size_t{1} << 19;
            auto const kept = collx::exec::map_memory(call, used, nullptr, staging);
            auto const made = collx::exec::map_memory(call, fresh, nullptr, staging);
            CHECK(kept.fragments() == made.fragments());
            CHECK(kept.in_place() == made.in_place());
            CHECK(kept.output() == call.output);
            CHECK(kept.where() == call.what.at.where);
            std::size_t const last = made.fragments() - 1;
            for (collx::place const where : {collx::place::input, collx::place::output}) {
              auto const a = kept.find({where, 1, 1}, 0, last), b = made.find({where, 1, 1}, 0, last);
              CHECK(a.data == b.data);
              CHECK(a.bytes == b.bytes);
            }
          }
}
