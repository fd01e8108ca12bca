// SPDX-License-Identifier: Apache-2.0
// What all programs that are compared have in common: which buffer a call takes, and what is timed of calls
// whose inputs are written before each of them. The clock is the test's.
#define METHOD_HAS_CLOCK
static double clock_us = 0;
static double method_now_us() { return clock_us; }

#include "../perf/method.h"

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "../perf/timing.hpp"
#include "../plain/timing.hpp"

namespace {

struct lone_rank {};
void meet(lone_rank&) {}
void slowest(lone_rank&, std::span<double>) {}

// An input that takes 100 us to write, and 3 us more where a call has read it since.
class watched_input {
 public:
  static constexpr double write_us = 100, back_us = 3, call_us = 7;

  void write() {
    clock_us += is_read_ ? write_us + back_us : write_us;
    is_read_ = false;
    is_fresh_ = true;
  }
  void call() {
    clock_us += call_us;
    stale_calls_ += !is_fresh_;
    is_fresh_ = false;
    is_read_ = true;
  }
  // Whether each call had an input of its own, and nothing was written behind the last one.
  [[nodiscard]] bool was_always_fresh() const { return stale_calls_ == 0 && is_read_; }

 private:
  bool is_fresh_ = false, is_read_ = false;
  int stale_calls_ = 0;
};

}  // namespace

TEST_CASE("calls walk over the buffers") {
  for (std::int64_t const count : {1, 4, 5}) {
    method_rotation turns{count, 0};
    for (std::int64_t call = 0; call < 3 * count; ++call) CHECK(method_next(&turns) == call % count);
  }
}

TEST_CASE("each write leaves other values than the one before, exact in every type") {
  for (int const rank : {0, 1, 7})
    for (std::int64_t write = 1; write < 20; ++write) {
      CHECK(method_written(write, rank) >= 1);
      CHECK(method_written(write, rank) <= 5);
      CHECK(method_written(write, rank) != method_written(write - 1, rank));
      CHECK(method_written(write, rank) != method_written(write, rank + 1));
    }
}

TEST_CASE("a write reaches each element and nothing else") {
  std::vector<float> memory(40, -1.0F);
  method_write(memory.data() + 1, 37, 4.0F);
  CHECK(memory == [] {
    std::vector<float> wanted(40, 4.0F);
    wanted[0] = wanted[38] = wanted[39] = -1;
    return wanted;
  }());
}

TEST_CASE("the median of the writes alone is taken off each sample") {
  double samples[] = {30, 10, 20}, writes[] = {900, 4, 1};
  CHECK(method_take_off_writes(samples, writes, 3) == 4);
  CHECK(samples[0] == 26);
  CHECK(samples[1] == 6);
  CHECK(samples[2] == 16);
}

// What the calls do to the writing is counted, from the first turn of a batch on.
TEST_CASE("calls of fresh inputs are timed without the writing") {
  constexpr double wanted_us = watched_input::call_us + watched_input::back_us;
  watched_input input;
  SUBCASE("by a communicator's ranks") {
    lone_rank alone;
    perf::job asked;
    asked.bytes = std::int64_t{8} << 20;
    perf::point result;
    result.buffers = 1;
    perf::time_fresh_calls(
        alone, asked, result, [&] { input.write(); }, [&](std::int64_t) { input.call(); });
    CHECK(result.iterations == method_iterations_least);
    CHECK(result.min_us == doctest::Approx(wanted_us));
    CHECK(result.p99_us == doctest::Approx(wanted_us));
    CHECK(result.write_us == doctest::Approx(watched_input::write_us));
  }
  SUBCASE("by forked ranks") {
    plain::team alone(1, false);
    plain::timing const found = plain::time_fresh(
        alone, {}, std::int64_t{8} << 20, [&] { input.write(); }, [&](std::int64_t) { input.call(); });
    CHECK(found.min_us == doctest::Approx(wanted_us));
    CHECK(found.p99_us == doctest::Approx(wanted_us));
    CHECK(found.write_us == doctest::Approx(watched_input::write_us));
  }
  CHECK(input.was_always_fresh());
}
