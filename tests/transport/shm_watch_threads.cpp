// SPDX-License-Identifier: Apache-2.0
// Two threads that ask after the same process at once, each for a communicator of its own: no descriptor is
// lost, and none is closed while the other asks. This program's own syscall(), open() and poll() see to it
// that they are where it matters.
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <thread>

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collx/core/clock.hpp"
#include "collx/transport/shared_memory/process.hpp"
#include "transport/child.hpp"

namespace {

namespace shared_memory = collx::transport::shared_memory;
using shared_memory::process_watch;

// Where a thread of a test stands still, until a condition holds. A minute at most, so that what never comes
// is a failure with words.
template <class Holds>
void stand_until(Holds const& holds) {
  for (auto const until_us = collx::now_us() + 60'000'000; !holds() && collx::now_us() < until_us;)
    sched_yield();
}

// Both have asked for a descriptor of the process before either has it.
struct both_open {
  std::atomic<bool> on{false};
  std::atomic<int> came{0};
} both_open;

// The first has its descriptor, and is to be told nothing of the process; the second asks after that.
struct refused_first {
  std::atomic<bool> on{false}, has_opened{false}, is_polling{false}, is_back{false};
} refused_first;
thread_local bool is_first = false;

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

}  // namespace

extern "C" long syscall(long number, ...) noexcept {
  static auto* const real = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  long given[6];
  va_list list;
  va_start(list, number);
  for (long& each : given) each = va_arg(list, long);
  va_end(list);
  if (number == SYS_pidfd_open && both_open.on) {
    ++both_open.came;
    stand_until([] { return both_open.came >= 2; });
  }
  return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

extern "C" int open(char const* path, int flags, ...) {
  if (refused_first.on && is_first && std::strncmp(path, "/proc/", 6) == 0) {
    refused_first.has_opened = true;
    stand_until([] { return refused_first.is_polling.load(); });
    return errno = EMFILE, -1;
  }
  va_list list;
  va_start(list, flags);
  mode_t const mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return openat(AT_FDCWD, path, flags, mode);
}

extern "C" int poll(pollfd* all, nfds_t count, int timeout_ms) {
  if (refused_first.on && !is_first) {
    refused_first.is_polling = true;
    stand_until([] { return refused_first.is_back.load(); });
  }
  timespec const rest{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
  return ppoll(all, count, timeout_ms < 0 ? nullptr : &rest, nullptr);
}

TEST_CASE("a process that two threads begin to watch at once has one descriptor, which is given back") {
  child one;
  std::uint64_t const started = shared_memory::start_time(one.pid());
  int const before = open_descriptors();
  bool ended[2] = {true, true};
  {
    process_watch watch;
    both_open.on = true;
    std::thread other([&] { ended[1] = watch.ended(one.pid(), started); });
    ended[0] = watch.ended(one.pid(), started);
    other.join();
    both_open.on = false;
    REQUIRE(both_open.came == 2);
    CHECK(open_descriptors() == before + 1);
    CHECK(watch.runs());
  }
  CHECK_FALSE(ended[0]);
  CHECK_FALSE(ended[1]);
  CHECK(open_descriptors() == before);
}

TEST_CASE("a process is not lost to a thread while another one gives a descriptor of it back") {
  child one;
  std::uint64_t const started = shared_memory::start_time(one.pid());
  int const before = open_descriptors();
  {
    process_watch watch;
    refused_first.on = true;
    std::thread first([&] {
      is_first = true;
      CHECK_FALSE(watch.ended(one.pid(), started));  // not told
      refused_first.is_back = true;
    });
    stand_until([] { return refused_first.has_opened.load(); });
    // The first stands in open() until this one polls, and closes what it has before that goes on.
    bool const ended = watch.ended(one.pid(), started);
    first.join();
    refused_first.on = false;
    CHECK_FALSE(ended);
    CHECK(watch.runs());
  }
  CHECK(open_descriptors() == before);
}
