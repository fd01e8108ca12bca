// SPDX-License-Identifier: Apache-2.0
// connect<transport::tcp>(), as a launcher's processes call it.
// component: tcp
#include <cstdio>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/wait.h>

#include <doctest/doctest.h>

#include "bootstrap/connecting.hpp"
#include "bootstrap/meeting_process.hpp"
#include "collx/bootstrap/tcp.hpp"
#include "collx/collective/all_reduce.hpp"
#include "watchdog.hpp"

namespace {

using collx::rank_t;

void be_rank(rank_t rank, int size, std::string const& place) {
  connecting::forget_variables();
  setenv("COLLX_RENDEZVOUS", place.c_str(), 1);
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
}

// No exit codes of a sanitizer.
constexpr int shares = 10, has_its_own = 11;

// The process is bound to the given processor.
int sharing_found(rank_t rank, int size, std::string const& place, int processor) {
  be_rank(rank, size, place);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(processor), &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) return 3;
  try {
    return collx::connect<collx::transport::tcp>().engine().endpoint().is_sharing() ? shares : has_its_own;
  } catch (std::exception const& failure) {
    std::fprintf(stderr, "rank %d: %s\n", rank, failure.what());
    return 2;
  }
}

// What a process is, and says of how it went: 0 is well.
int run_rank(rank_t rank, std::string const& place, char const* staging_bytes) {
  be_rank(rank, 2, place);
  if (staging_bytes[0] != '\0') setenv("COLLX_STAGING_BYTES", staging_bytes, 1);
  try {
    auto world = collx::connect<collx::transport::tcp>();
    // Longer than one message of any of them: who cuts otherwise would find a message that does not fit.
    std::vector<float> const in(std::size_t{1} << 20, static_cast<float>(rank + 1));
    std::vector<float> out(in.size());
    collx::all_reduce(world, std::span<float const>(in), std::span<float>(out), collx::sum);
    for (float const each : out)
      if (each != 3) return 2;
    return 0;
  } catch (std::exception const& failure) {
    std::fprintf(stderr, "rank %d: %s\n", rank, failure.what());
    return 1;
  }
}

// What each process ended with.
template <class F>
std::vector<int> in_processes(int size, F const& run) {
  std::vector<pid_t> ranks;
  for (rank_t r = 0; r < size; ++r) {
    ranks.push_back(fork());
    REQUIRE(ranks.back() >= 0);
    if (ranks.back() == 0) _exit(run(r));
  }
  std::vector<int> codes;
  for (pid_t const each : ranks) {
    int how = 0;
    REQUIRE(waitpid(each, &how, 0) == each);
    codes.push_back(WIFEXITED(how) ? WEXITSTATUS(how) : -1);
  }
  return codes;
}

constexpr int no_third = -1;

}  // namespace

TEST_CASE("connect over tcp: the staging memory of rank 0 holds for all") {
  watchdog dog;
  char const* const sizes[][2] = {{"65536", "1048576"}, {"1048576", "65536"}, {"", "131072"}, {"131072", ""}};
  for (auto const& [zero, one] : sizes) {
    CAPTURE(zero);
    CAPTURE(one);
    std::string const place = meeting::free_place();
    auto const codes = in_processes(2, [&](rank_t r) { return run_rank(r, place, r == 0 ? zero : one); });
    CHECK(codes == std::vector<int>{0, 0});
  }
}

TEST_CASE("connect over tcp: all ranks know alike whether they share processors") {
  watchdog dog;
  cpu_set_t allowed;
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  std::vector<int> numbers;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(static_cast<std::size_t>(i), &allowed)) numbers.push_back(i);
  int const first = numbers.front(), last = numbers.back();
  // Of three, the first two have one processor each, or all have the same.
  for (int const third : {no_third, first}) {
    std::vector<int> on = {first, last};
    if (third != no_third) on.push_back(third);
    int const size = static_cast<int>(on.size());
    std::string const place = meeting::free_place();
    auto const codes = in_processes(size, [&](rank_t r) {
      return sharing_found(r, size, place, on[static_cast<std::size_t>(r)]);
    });
    CHECK(codes == std::vector<int>(on.size(), size == 3 || first == last ? shares : has_its_own));
  }
}
