// SPDX-License-Identifier: Apache-2.0
// What a kernel met with is thrown later, from another call: with the name and the number of the one that
// failed, on the rank that it failed on.
#include <string>

#include <doctest/doctest.h>

#include "collx/algo/ring.hpp"
#include "collx/transport/windows/failure.hpp"
#include "exec/lane_call.hpp"

namespace {

using namespace collx;
using window_group::team_t;
namespace windows = transport::windows;

constexpr std::size_t count = 3200;

// What rank 0 of two puts into its stream, where calls run one after the other.
class stream {
 public:
  explicit stream(window_group::group& all) : all_(all), in_(count, 1.0f), out_(count) {}

  // A call: rank 1 takes part, or not. Returns whether it worked.
  bool run(char const* collective, std::uint64_t sequence, bool both = false) {
    bool worked = false;
    std::vector<float> in(count, 2.0f), out(count);
    exec::lane_workspace workspaces[2] = {};
    all_.run([&](rank_t r) { return r == 0 || both; },
             [&](rank_t r, int lane, team_t& team) {
               windows::view mine = all_.view(r);
               mine.collective = collective, mine.sequence = sequence;
               bool const done = window_group::perform_on<algo::ring::all_reduce>(
                   mine, all_.chosen(), lane, team, workspaces[r], r == 0 ? in_.data() : in.data(),
                   r == 0 ? out_.data() : out.data(), {2, count}, sum);
               if (r == 0) worked = done;
             });
    return worked;
  }

 private:
  window_group::group& all_;
  std::vector<float> in_, out_;
};

// What the host of a rank is thrown; nothing if all is well.
std::string thrown(window_group::group const& all, rank_t rank, status expected,
                   std::uint32_t const& stopped_by_host = 0) {
  try {
    windows::throw_if_failed(all.report(rank), stopped_by_host, rank);
  } catch (error const& e) {
    CHECK(e.code() == expected);
    return e.what();
  }
  return {};
}

bool says(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a failure is thrown with the call that failed, whatever was queued before and behind it") {
  window_group::group all({.size = 2, .timeout_ns = 50'000'000});
  stream calls(all);
  // Long enough for a loaded machine, as long as both take part.
  for (rank_t const r : {0, 1}) all.timeout_ns(r, 60'000'000'000);
  REQUIRE(calls.run("all_gather", 6, true));
  CHECK(thrown(all, 0, status::ok) == "");
  all.timeout_ns(0, 50'000'000);
  REQUIRE_FALSE(calls.run("all_reduce", 7));
  REQUIRE_FALSE(calls.run("broadcast", 8));
  for (int again = 0; again < 2; ++again) {
    std::string const text = thrown(all, 0, status::timeout);
    CAPTURE(text);
    CHECK(says(text, "all_reduce<on the GPU> #7 on rank 0: timeout, peer 1"));
    CHECK(says(text, "step "));
    CHECK(says(text, "6400 bytes"));
  }
  // The other rank has not come to that call; it is told by its next one.
  CHECK(thrown(all, 1, status::ok) == "");
}

TEST_CASE("a rank that others have stopped says who did") {
  window_group::group all({.size = 2, .timeout_ns = 50'000'000});
  stream calls(all);
  REQUIRE_FALSE(calls.run("all_reduce", 0));
  windows::view late = all.view(1);
  late.collective = "all_reduce";
  exec::lane_workspace workspace{};
  device::solo_team alone;
  CHECK_FALSE(exec::may_begin(alone, windows::lane_port(late, 0), workspace));
  std::string const text = thrown(all, 1, status::aborted);
  CHECK(says(text, "all_reduce<on the GPU> #0 on rank 1"));
  CHECK(says(text, "first reported by rank 0"));
}

TEST_CASE("a host that has given up need not wait for a kernel to hear of it") {
  window_group::group const all({.size = 2});
  CHECK(says(thrown(all, 1, status::aborted, 2), "abort() was called on rank 1; make a new group"));
}

TEST_CASE("a rank that left a call out is told so, in words") {
  windows::report told{};
  told.code = static_cast<std::uint32_t>(status::mismatch);
  told.collective = "all_reduce", told.sequence = 7, told.peer = 2, told.bytes = 400;
  told.calls = 7, told.calls_ahead = -1;
  std::uint32_t const never = 0;
  std::string text;
  try {
    windows::throw_if_failed(told, never, 1);
  } catch (error const& e) {
    CHECK(e.code() == status::mismatch);
    text = e.what();
  }
  CAPTURE(text);
  CHECK(says(text, "all_reduce<on the GPU> #7 on rank 1: mismatch, peer 2"));
  CHECK(says(text, "another place in the order of calls: 7 here, 6 there"));
  CHECK(says(text, "in the same order of calls"));
}
