// SPDX-License-Identifier: Apache-2.0
// Processes that join a segment though they must not, or too late: whoever is right goes on, or is told at
// once.
// thread sanitizer: no, each rank is a process of one thread
#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collx/collective/all_reduce.hpp"
#include "collx/net/fd.hpp"
#include "collx/transport/shm.hpp"

namespace {

using collx::rank_t;
using collx::status;
using collx::transport::shared_memory::segment;

constexpr int fine = 0, refused_as_taken = 11, told_at_once = 12, late = 13, wrong = 14, other_error = 15;

// Joins, and adds up with the others.
int take_part(int fd, rank_t rank) {
  try {
    auto world = collx::transport::shm::join(fd, rank);
    int sum = 1;
    collx::all_reduce(world, std::span(&sum, 1), collx::sum);
    return sum == world.size() ? fine : wrong;
  } catch (collx::error const& failure) {
    std::string const text = failure.what();
    if (text.find("is already taken by process") != std::string::npos) return refused_as_taken;
    if (failure.report().code == status::aborted) return told_at_once;
    if (failure.report().code == status::timeout) return late;
    return other_error;
  }
}

pid_t started(std::function<int()> const& run) {
  pid_t const process = fork();
  REQUIRE(process >= 0);
  if (process == 0) _exit(run());
  return process;
}
int end_of(pid_t process) {
  int how = -1;
  REQUIRE(waitpid(process, &how, 0) == process);
  return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

}  // namespace

TEST_CASE("shm: a second process that joins as a rank which is taken is refused, and harms nobody") {
  collx::net::owned_fd const memory(
      segment::create(3, {.timeout_us = 60'000'000, .staging_bytes = 64 * 1024, .heap_bytes = 1 << 20}));
  auto const seen = segment::attach(memory.get());
  pid_t const one = started([&] { return take_part(memory.get(), 1); });
  while (seen.of(1).process.load(std::memory_order_acquire) == 0) sched_yield();
  // Processes are told apart by when they began, in hundredths of a second.
  for (std::uint64_t const until_us = collx::now_us() + 30'000; collx::now_us() < until_us;) sched_yield();
  CHECK(end_of(started([&] { return take_part(memory.get(), 1); })) == refused_as_taken);
  // Who looks at rank 1 from now on sees the process that it is.
  pid_t const zero = started([&] { return take_part(memory.get(), 0); });
  pid_t const two = started([&] { return take_part(memory.get(), 2); });
  for (pid_t const each : {zero, one, two}) CHECK(end_of(each) == fine);
}

TEST_CASE("shm: whoever comes after another rank has given up the start hears of that at once") {
  collx::net::owned_fd const memory(
      segment::create(2, {.timeout_us = 500'000, .staging_bytes = 64 * 1024, .heap_bytes = 1 << 20}));
  int word[2];
  REQUIRE(pipe(word) == 0);
  pid_t const zero = started([&] {
    int const how = take_part(memory.get(), 0);
    (void)!write(word[1], "x", 1);
    pause();  // it lives on
    return how;
  });
  char unused;
  REQUIRE(read(word[0], &unused, 1) == 1);
  CHECK(end_of(started([&] { return take_part(memory.get(), 1); })) == told_at_once);
  kill(zero, SIGKILL);
  CHECK(end_of(zero) == -1);
  close(word[0]), close(word[1]);
}
