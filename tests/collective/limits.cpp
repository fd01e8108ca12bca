// SPDX-License-Identifier: Apache-2.0
// Where the general rules end: one rank, schedules that want more than a transport has, requests that
// are left alone for longer than a deadline.
#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/exclusive_scan.hpp"
#include "collx/collective/reduce.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using communicator = collx::communicator<collx::transport::threads>;

// A right schedule that says it needs more messages in flight than any transport here has.
struct deep : collx::algo::direct_one_shot::all_reduce {
  static constexpr char const* name = "deep";
  static constexpr std::int32_t depth(collx::rank_t) { return 40; }
};

struct sum_times_ten {
  float operator()(float a, float b) const { return a + b; }
  float finish(float total, collx::rank_t) const { return 10 * total; }
};

struct finish_on_one_rank {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() const {
    watched::on_threads(1, [](communicator& comm) {
      std::vector<float> const in(3, 1);
      std::vector<float> out(3);
      if constexpr (std::is_same_v<Contract, collx::contract::all_reduce>)
        collx::all_reduce<Algorithm>(comm, in, out, sum_times_ten{});
      else collx::reduce<Algorithm>(comm, in, out, sum_times_ten{});
      require(out == std::vector<float>(3, 10), "finish() was not applied once");
      require(comm.engine().sequence() == 1, "the call was not counted");
    });
  }
};

}  // namespace

TEST_CASE("a schedule that declares more depth than the transport has is refused and loses nothing") {
  watched::on_threads(2, [](communicator& comm) {
    std::vector<int> v(10, 1);
    require(collx::try_all_reduce<deep>(comm, v) == collx::status::not_supported, "was not refused");
    collx::all_reduce(comm, v);
    require(v == std::vector<int>(10, 2), "the next collective");
  });
}

TEST_CASE("a schedule of more pieces than staging memory holds is refused and loses nothing") {
  struct wide {
    float values[32];
  };
  auto const add = [](wide a, wide const& b) {
    for (int i = 0; i < 32; ++i) a.values[i] += b.values[i];
    return a;
  };
  watched::on_threads(
      3,
      [&](communicator& comm) {
        // Two messages of 128 bytes for each of 1024 pieces, where 64 KiB are staged.
        std::vector<wide> in(1024, wide{{1}}), out(1024);
        using algorithm = collx::algo::pipelined_chain<1024>;
        require(collx::try_exclusive_scan<algorithm>(comm, in, out, add) == collx::status::not_supported,
                "was not refused");
        collx::exclusive_scan<collx::algo::pipelined_chain<16>>(comm, in, out, add);
        require(comm.rank() == 0 || out[1023].values[0] == static_cast<float>(comm.rank()), "the next one");
      },
      {.staging_bytes = 64 * 1024});
}

TEST_CASE("on one rank an operator's finish() is applied once, whatever the algorithm") {
  collx::for_each_schedule<collx::algo::all,
                           collx::type_list<collx::contract::all_reduce, collx::contract::reduce>>(
      finish_on_one_rank{});
}

TEST_CASE("time that a rank spends elsewhere between tests does not count against a request") {
  std::atomic<bool> late{false};
  watched::on_threads(2, [&](communicator& comm) {
    constexpr std::uint64_t timeout_us = 1'000'000;
    std::vector<int> v(1000, 1);
    if (comm.rank() == 1) {
      while (!late) std::this_thread::yield();  // begins when rank 0's request is older than its deadline
      auto const outcome = collx::start::all_reduce(comm, v).try_wait();
      require(outcome == collx::status::ok || outcome == collx::status::aborted, "another failure");
      return;
    }
    comm.timeout_us(timeout_us);
    auto request = collx::start::all_reduce(comm, v);
    std::uint64_t const started_us = collx::now_us();
    while (collx::now_us() - started_us < timeout_us * 5 / 4) std::this_thread::yield();  // elsewhere
    std::uint64_t const back_us = collx::now_us();
    late = true;
    auto outcome = collx::status::pending;
    while (outcome == collx::status::pending) outcome = request.try_test();
    // Where rank 1 gets no processor for so long, its peer may well give up; but not before.
    bool const waited_in_vain = collx::now_us() - back_us >= timeout_us;
    if (outcome == collx::status::timeout) return require(waited_in_vain, "the time elsewhere was counted");
    require(outcome == collx::status::ok && v == std::vector<int>(1000, 2), "the sum");
  });
}
