// SPDX-License-Identifier: Apache-2.0
// One rank's call is short, and sends blocks whole; another one's has an executor, which cuts them by what
// the schedule stages: what is counted, or on many ranks its documented cost. So a call may be short only
// where no executor would cut, whatever the schedule.
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/exec/short_call.hpp"
#include "collx/schedule/verify.hpp"
#include "collx/transport/threads.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using communicator = collx::communicator<collx::transport::threads>;

// Its documented cost is a bound that names more chunks than there are ranks.
struct loosely_bounded : collx::algo::direct_one_shot::all_reduce {
  static constexpr bool cost_is_bound = true;
  static constexpr collx::cost documented_cost(rank_t n) { return {n > 1, 4 * (n - 1), 4 * (n - 1)}; }
  static constexpr std::int64_t staged_chunks(rank_t n) { return 4 * (std::int64_t{n} - 1); }
};

// On more than 8 ranks by way of rank 0, which sends each of the others a copy of its own of nearly
// everything: more chunks in one fragment than there are ranks. On fewer all is as a direct one has it.
struct copies_for_each {
  using contract = collx::contract::all_gather;
  using few = collx::algo::direct_one_shot::all_gather;
  static constexpr rank_t few_max = 8;
  static constexpr bool supports(rank_t) { return true; }
  static constexpr std::int32_t chunk_count(rank_t size) { return size; }
  static constexpr std::int32_t step_count(collx::problem) { return 2; }
  static constexpr collx::primitive step(collx::problem p, std::int32_t s) {
    using enum collx::place;
    if (p.size <= few_max) return few::step(p, s);
    collx::region const mine{input, p.rank, 1};
    if (p.rank != 0 && s == 0)
      return {.to = collx::only(0), .operand = mine, .target = {output, p.rank, 1}, .store = true};
    if (p.rank != 0)
      return {.from = collx::only(0),
              .target = collx::round_the_end(output, (p.rank + 1) % p.size, p.size - 1, p.size),
              .store = true};
    if (s == 0)
      return {.from = collx::everybody(p.size), .operand = mine, .target = {output, 0, 1, 1}, .store = true};
    return {.to = collx::everybody(p.size),
            .operand = {.where = output, .first = 1, .count = p.size - 1, .per_peer = 1, .wraps = true}};
  }
  static constexpr collx::cost documented_cost(rank_t size) {
    if (size <= few_max) return few::documented_cost(size);
    return {2, size - 1, std::int64_t{size - 1} * (size - 1)};
  }
};

constexpr collx::transport::settings least{.staging_bytes = 64 * 1024};

struct staging_of {
  std::size_t bytes;
  [[nodiscard]] std::size_t staging_bytes() const noexcept { return bytes; }
};

// The fragments of every executor, by the map that it makes.
template <class S>
std::size_t fragments(collx::problem p, std::size_t block_bytes, std::size_t staging_bytes) {
  char memory = 0;  // never read: only where things lie is asked
  auto const user = collx::exec::even_buffers<typename S::contract>(p, &memory, &memory, false);
  return collx::exec::map_memory<S>(
             p, [&] { return user; }, nullptr, block_bytes, 1, staging_bytes)
      .fragments();
}

// Calls found to be short.
template <class S>
int check_nobody_cuts() {
  int found = 0;
  for (rank_t size = 2; size <= 200; ++size)
    for (std::size_t const staging : {std::size_t{4096}, std::size_t{64 * 1024}, std::size_t{512 * 1024}})
      for (std::size_t bytes = 0; bytes <= collx::exec::short_staged_bytes; bytes += 8) {
        collx::problem const p{0, size, 0};
        if (!collx::exec::stays_whole<S>(staging_of{staging}, p, bytes)) break;
        ++found;
        CAPTURE(size);
        CAPTURE(bytes);
        REQUIRE(fragments<S>(p, bytes, staging) == 1);
      }
  return found;
}

struct nobody_cuts {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if constexpr (collx::exec::detail::is_short<Schedule>()) {
      CAPTURE(Contract::name);
      CAPTURE(Algorithm::name);
      CHECK(check_nobody_cuts<Schedule>() > 1000);
      // Which is found when compiling, rather than by counting.
      for (rank_t size = 1; size <= 200; ++size) CHECK(collx::documented_cost<Schedule>(size).chunks <= size);
    }
  }
};

int element(rank_t rank, std::size_t i, int round) { return (rank + 1) * (static_cast<int>(i) + 7) + round; }

template <class S>
void calls_are_right(communicator& comm, std::size_t bytes, int round) {
  std::size_t const count = bytes / sizeof(int);
  std::vector<int> input(count), output(count);
  for (std::size_t i = 0; i < count; ++i) input[i] = element(comm.rank(), i, round);
  bool right = true;
  if constexpr (std::same_as<typename S::contract, collx::contract::all_reduce>) {
    collx::all_reduce<S>(comm, input, output);
    for (std::size_t i = 0; i < count; ++i) {
      int sum = 0;
      for (rank_t r = 0; r < comm.size(); ++r) sum += element(r, i, round);
      right = right && output[i] == sum;
    }
  } else {
    output.resize(count * static_cast<std::size_t>(comm.size()));
    collx::all_gather<S>(comm, input, output);
    for (std::size_t i = 0; i < output.size(); ++i)
      right = right && output[i] == element(static_cast<rank_t>(i / count), i % count, round);
  }
  CHECK(right);
}

}  // namespace

TEST_CASE("short calls: the schedules of these tests are right, and stage more than a chunk for each rank") {
  for (rank_t size = 1; size < 12; ++size) {
    CHECK(collx::verify<copies_for_each>(size).ok());
    CHECK(collx::verify<loosely_bounded>(size).ok());
  }
  CHECK(collx::exec::detail::is_short<copies_for_each>());
  CHECK(collx::exec::detail::is_short<loosely_bounded>());
  CHECK(collx::exec::largest_staged<copies_for_each>(collx::shape(9)) == 64);
  CHECK(collx::exec::largest_staged<loosely_bounded>(collx::shape(64)) == 1);
  CHECK(collx::exec::largest_staged<loosely_bounded>(collx::shape(65)) == 256);
}

TEST_CASE("short calls: none of a block that some executor would cut") {
  CHECK(check_nobody_cuts<loosely_bounded>() > 1000);
  CHECK(check_nobody_cuts<copies_for_each>() > 1000);
  collx::for_each_schedule<collx::algo::all, collx::contract::all>(nobody_cuts{});
}

// Who looks too early has an executor, and who does not, none.
TEST_CASE("short calls: beside executors that cut by the documented cost, on more than 64 ranks") {
  for (std::size_t const bytes : {128u, 256u, 320u})
    watched::on_threads(
        66, [&](communicator& comm) { calls_are_right<loosely_bounded>(comm, bytes, 0); }, least);
}

TEST_CASE("short calls: beside executors that cut by what they have counted") {
  for (std::size_t const bytes : {480u, 1024u, 3072u})
    watched::on_threads(
        9,
        [&](communicator& comm) {
          for (int round = 0; round < 20; ++round) calls_are_right<copies_for_each>(comm, bytes, round);
        },
        least);
}
