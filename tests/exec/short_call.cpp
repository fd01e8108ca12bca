// SPDX-License-Identifier: Apache-2.0
// Short calls: what they do at once, and how far they say they came where they cannot.
#include "collx/exec/short_call.hpp"

#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/chain.hpp"
#include "collx/algo/direct.hpp"
#include "collx/algo/ring.hpp"
#include "collx/op/reduction.hpp"
#include "collx/transport/threads.hpp"
#include "device/line_speed.hpp"

namespace {

using collx::problem;
using collx::rank_t;
using collx::exec::stopped_at;
using collx::transport::threads_world;
using endpoint = collx::transport::threads::endpoint;
using handover = collx::transport::handover;

constexpr std::size_t bytes = 8;
using pair_of_floats = float[2];

template <rank_t Size>
struct group_of {
  group_of() : world(*new threads_world(Size, {.staging_bytes = 64 * 1024})) {
    for (rank_t r = 0; r < Size; ++r) {
      collx::array<rank_t> members(static_cast<std::size_t>(Size));
      for (rank_t m = 0; m < Size; ++m) members[static_cast<std::size_t>(m)] = m;
      ends[r] = new endpoint(world, r, std::move(members), world.blocks(), world.layout());
    }
  }
  group_of(group_of const&) = delete;
  ~group_of() {
    for (endpoint* each : ends) each->leave();
    for (endpoint* each : ends) delete each;
    world.drop();
  }
  void send(rank_t from, rank_t to, pair_of_floats const& values, std::size_t count_bytes = bytes) {
    ends[from]->send(0, to, reinterpret_cast<std::byte const*>(values), count_bytes, handover::staged);
  }

  void send(rank_t from, rank_t to, std::vector<float> const& values) {
    ends[from]->send(0, to, reinterpret_cast<std::byte const*>(values.data()), values.size() * sizeof(float),
                     handover::staged);
  }

  threads_world& world;
  endpoint* ends[static_cast<std::size_t>(Size)];
};
using three_ends = group_of<3>;

template <class S>
stopped_at run(endpoint& end, problem where, float const* input, float* output) {
  collx::exec::workspace work(3);
  collx::sum_t const sum;
  using call = collx::exec::short_call<S, float, collx::sum_t, endpoint>;
  return call(end, work, where, input, output, bytes, sum, 1, false, input == output).run();
}

// Of `count` floats each, by way of staging.
template <class S>
stopped_at run_staged(collx::exec::workspace& work, endpoint& end, problem where, float const* input,
                      float* output, std::size_t count) {
  collx::sum_t const sum;
  using call = collx::exec::short_call<S, float, collx::sum_t, endpoint>;
  return call(end, work, where, input, output, count * sizeof(float), sum, 1, true, input == output).run();
}
template <class S>
stopped_at run_staged(endpoint& end, problem where, float const* input, float* output, std::size_t count) {
  collx::exec::workspace work(3);
  return run_staged<S>(work, end, where, input, output, count);
}

bool same(stopped_at const& a, stopped_at const& b) { return a.step == b.step && a.peers == b.peers; }

}  // namespace

TEST_CASE("short calls: schedules of few steps, none of which takes and sends") {
  using collx::exec::detail::is_short;
  CHECK(is_short<collx::algo::direct_one_shot::all_reduce>());
  CHECK(is_short<collx::algo::direct_one_shot::broadcast>());
  CHECK(is_short<collx::algo::direct_one_shot::all_to_all>());
  CHECK_FALSE(is_short<collx::algo::direct_two_shot::all_reduce>());
  CHECK_FALSE(is_short<collx::algo::ring::all_reduce>());
  CHECK_FALSE(is_short<collx::algo::chain::reduce>());
}

TEST_CASE("short calls: an all_reduce whose letters are there is done at once") {
  three_ends group;
  pair_of_floats const others[] = {{10, 20}, {100, 200}};
  float const mine[] = {1, 2};
  float result[2] = {};
  group.send(1, 0, others[0]);
  group.send(2, 0, others[1]);
  stopped_at const at = run<collx::algo::direct_one_shot::all_reduce>(*group.ends[0], {0, 3}, mine, result);
  CHECK(at.step == stopped_at::at_the_end);
  CHECK(result[0] == 111);
  CHECK(result[1] == 222);
  for (rank_t peer : {1, 2}) {
    collx::transport::arrival letter;
    REQUIRE(group.ends[peer]->arrived(0, 0, letter));
    CHECK(letter.bytes == bytes);
    CHECK(std::memcmp(letter.data, mine, bytes) == 0);
  }
}

TEST_CASE("short calls: a letter that is not there stops a fan-in before it has taken any") {
  three_ends group;
  using schedule = collx::algo::direct_one_shot::all_reduce;
  pair_of_floats const other = {10, 20};
  float const mine[] = {1, 2};
  float result[2] = {};
  group.send(1, 0, other);
  CHECK(same(run<schedule>(*group.ends[0], {0, 3}, mine, result), {1, 0}));
  CHECK(result[0] == 0);
  collx::transport::arrival letter;
  CHECK(group.ends[0]->arrived(0, 1, letter));  // not consumed
}

TEST_CASE("short calls: messages that are results are taken one by one") {
  three_ends group;
  using schedule = collx::algo::direct_one_shot::gather;
  pair_of_floats const other = {10, 20};
  float const mine[] = {1, 2};
  float result[6] = {};
  group.send(1, 0, other);
  CHECK(same(run<schedule>(*group.ends[0], {0, 3, 0}, mine, result), {0, 1}));
  CHECK(result[2] == 10);
  CHECK(result[3] == 20);
}

TEST_CASE("short calls: no credit stops a fan-out at the peer that gives none") {
  three_ends group;
  using schedule = collx::algo::direct_one_shot::broadcast;
  float values[] = {1, 2};
  while (group.ends[0]->can_send(0, 2)) group.send(0, 2, {0, 0});
  CHECK(same(run<schedule>(*group.ends[0], {0, 3, 0}, values, values), {0, 1}));
}

TEST_CASE("short calls: a message of another size is left to be reported") {
  three_ends group;
  using schedule = collx::algo::direct_one_shot::broadcast;
  float values[] = {1, 2};
  group.send(0, 1, {5, 6}, 4);
  CHECK(same(run<schedule>(*group.ends[1], {1, 3, 0}, values, values), {0, 0}));
  CHECK(values[0] == 1);
}

TEST_CASE("short calls: what fits no letter is staged once for all, and staging is given back") {
  three_ends group;
  using schedule = collx::algo::direct_one_shot::broadcast;
  constexpr std::size_t count = 250;
  float values[count];
  // 500 times the staging memory: a call that did not close its fragment would soon find none.
  for (int round = 0; round < 20'000; ++round) {
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(round) + static_cast<float>(i);
    stopped_at const at = run_staged<schedule>(*group.ends[0], {0, 3, 0}, values, values, count);
    REQUIRE(at.step == stopped_at::at_the_end);
    std::byte const* where = nullptr;
    for (rank_t peer : {1, 2}) {
      collx::transport::arrival message;
      REQUIRE(group.ends[peer]->arrived(0, 0, message));
      REQUIRE(message.bytes == sizeof values);
      REQUIRE(std::memcmp(message.data, values, sizeof values) == 0);
      REQUIRE(message.data != reinterpret_cast<std::byte const*>(values));
      if (peer == 1) where = message.data;
      REQUIRE(message.data == where);
      group.ends[peer]->consume(0, 0);
    }
  }
}

TEST_CASE("short calls: no staging memory stops a fan-out") {
  three_ends group;
  using schedule = collx::algo::direct_one_shot::broadcast;
  float values[250] = {};
  for (std::size_t const each : {std::size_t{60'000}, sizeof values})
    while (std::byte* const next = group.ends[0]->stage(0, each)) {
      group.ends[0]->send(0, 1, next, each, handover::staged);
      group.ends[0]->end_fragment(0);
    }
  CHECK(same(run_staged<schedule>(*group.ends[0], {0, 3, 0}, values, values, 250), {0, 0}));
}

// Ranks are threads, so that peers can read all memory; below 4 KiB a copy is cheaper for more than two.
TEST_CASE("short calls: blocks of 4 KiB are lent, and the call ends when they have been read") {
  using schedule = collx::algo::direct_one_shot::all_gather;
  std::vector<float> values(4 * 1024);
  float* const result = values.data() + 1024;
  auto const sent = [&](std::size_t count) {
    three_ends group;
    stopped_at const at = run_staged<schedule>(*group.ends[1], {1, 3}, values.data(), result, count);
    CHECK(same(at, {1, 0}));  // waits for the others'
    collx::transport::arrival message;
    REQUIRE(group.ends[0]->arrived(0, 1, message));
    bool const lent = message.data == reinterpret_cast<std::byte const*>(values.data());
    CHECK(at.lent == lent);
    return lent;
  };
  CHECK_FALSE(sent(1023));
  CHECK(sent(1024));

  three_ends group;
  std::vector<float> theirs(1024, 1.0f);
  group.send(0, 1, theirs);
  group.send(2, 1, theirs);
  stopped_at const at = run_staged<schedule>(*group.ends[1], {1, 3}, values.data(), result, 1024);
  CHECK(same(at, {2, 0}));  // behind its last step
  CHECK(at.lent);
  CHECK(result[0] == 1.0f);
  CHECK(result[3 * 1024 - 1] == 1.0f);
}

// In place, and where a root sends, nobody asks whether the program writes it before each call.
TEST_CASE(
    "short calls: two ranks lend from 2 KiB on what may be seen to be written, unless lines come quickly") {
  using direct = collx::algo::direct_one_shot;
  std::vector<float> values(2 * 1024), result(2 * 1024);
  auto const lends_of = [&]<class S>(float* output, std::size_t count) {
    group_of<2> group;
    return run_staged<S>(*group.ends[1], {1, 2, 1}, values.data(), output, count).lent;
  };
  auto const lends = [&](std::size_t count) {
    return lends_of.operator()<direct::all_reduce>(result.data(), count);
  };
  for (bool const quickly : {false, true}) {
    device_test::assumed const taken_for(collx::device::cpu::takes_lines_quickly, quickly);
    for (std::size_t const count : {512u, 1023u, 1024u}) {
      CHECK(lends_of.operator()<direct::scatter>(result.data(), count) == (count == 1024));
      CHECK(lends_of.operator()<direct::all_gather>(values.data(), count) == (count == 1024));
    }
    CHECK_FALSE(lends(511));
    CHECK(lends(512) == !quickly);
    CHECK(lends(1023) == !quickly);
    CHECK(lends(1024));
  }
}

TEST_CASE("short calls: what the program writes before each call is staged below 16 KiB") {
  using schedule = collx::algo::direct_one_shot::all_reduce;
  for (std::size_t const count : {1024u, 4095u, 4096u}) {
    CAPTURE(count);
    std::vector<float> values(count), result(count), theirs(count, 1.0f);
    group_of<2> group;
    collx::exec::workspace work(3);
    for (int call = 0; call < 20; ++call) {
      CAPTURE(call);
      bool const writes = call >= 5 && call < 15;
      if (writes) values.assign(count, static_cast<float>(call));
      group.send(1, 0, theirs);
      stopped_at const at =
          run_staged<schedule>(work, *group.ends[0], {0, 2}, values.data(), result.data(), count);
      collx::transport::arrival message;
      REQUIRE(group.ends[1]->arrived(0, 0, message));
      bool const lent = message.data == reinterpret_cast<std::byte const*>(values.data());
      CHECK(lent == at.lent);
      CHECK(lent == (!writes || count == 4096));
      CHECK(result[count - 1] == values[count - 1] + 1.0f);
      group.ends[1]->consume(0, 0);
    }
  }
}

TEST_CASE("short calls: a root lends from 4 KiB on if each gets another block, else above 8 KiB, or 4") {
  using direct = collx::algo::direct_one_shot;
  std::vector<float> values(4 * 1024);
  auto const lends = [&]<class S>(std::size_t count) {
    three_ends group;
    auto const at = run_staged<S>(*group.ends[1], {1, 3, 1}, values.data(), values.data(), count);
    CHECK((at.step == stopped_at::at_the_end) != at.lent);
    return at.lent;
  };
  device_test::on_slow_and_quick_lines([&](bool slowly) {
    std::size_t const most_staged = slowly ? 1024 : 2048;
    CHECK_FALSE(lends.operator()<direct::broadcast>(most_staged));
    CHECK(lends.operator()<direct::broadcast>(most_staged + 1));
    CHECK_FALSE(lends.operator()<direct::scatter>(1023));
    CHECK(lends.operator()<direct::scatter>(1024));
  });
}

TEST_CASE("short calls: what a later step overwrites is staged") {
  using schedule = collx::algo::direct_one_shot::all_reduce;
  three_ends group;
  std::vector<float> values(1024), apart(1024);
  for (float* const input : {values.data(), apart.data()}) {
    stopped_at const at = run_staged<schedule>(*group.ends[1], {1, 3}, input, values.data(), 1024);
    CHECK(same(at, {1, 0}));
    CHECK(at.lent == (input != values.data()));
  }
}

TEST_CASE("short calls: a fan-in of staged messages") {
  three_ends group;
  constexpr std::size_t count = 200;
  float input[3][count], result[count] = {};
  for (rank_t r = 0; r < 3; ++r)
    for (std::size_t i = 0; i < count; ++i) input[r][i] = static_cast<float>(r + 1) * static_cast<float>(i);
  using schedule = collx::algo::direct_one_shot::all_reduce;
  for (rank_t r : {1, 2})
    CHECK(same(run_staged<schedule>(*group.ends[r], {r, 3}, input[r], result, count), {1, 0}));
  stopped_at const at = run_staged<schedule>(*group.ends[0], {0, 3}, input[0], result, count);
  CHECK(at.step == stopped_at::at_the_end);
  for (std::size_t i = 0; i < count; ++i) CHECK(result[i] == 6 * static_cast<float>(i));
}
