// SPDX-License-Identifier: Apache-2.0
// compiled: apart, it replaces syscall
// Ranks where the system gives no fences (membarrier is refused, as old kernels and some sandboxes do): they
// nap shortly, everything wakes them all the same, and who gives up keeps peers out of its buffers.
#include <cerrno>
#include <cstdarg>
#include <vector>

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/syscall.h>

#include "collx/bootstrap/local.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;
using collx::transport::settings;

constexpr settings sleeps_at_once{.timeout_us = 60'000'000, .staging_bytes = 64 * 1024, .yield_us = 0};

template <class Everything>
void on_both(rank_t size, Everything const& everything, settings const& chosen) {
  watched::on_threads(size, everything, chosen);
  for (int const code : watched::on_processes(size, everything, chosen)) CHECK(code == 0);
}

}  // namespace

extern "C" long syscall(long number, ...) noexcept {
  static auto* const real = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  if (number == SYS_membarrier) return errno = ENOSYS, -1;
  long given[6];
  va_list list;
  va_start(list, number);
  for (long& each : given) each = va_arg(list, long);
  va_end(list);
  return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

TEST_CASE("without fences everything wakes ranks that sleep at once") {
  on_both(
      3,
      [](auto& comm) {
        require(!comm.world().fenced(), "the system was asked");
        std::vector<int> to(3 * 3000, comm.rank()), from(to.size());
        for (int round = 0; round < 5; ++round) {
          std::vector<int> small(1, comm.rank() + 1), large(100'000, comm.rank() + 1);
          auto first = collx::start::all_reduce(comm, large);
          collx::all_to_all(comm, to, from);
          collx::all_reduce(comm, small);
          first.wait();
          collx::barrier(comm);
          require(small[0] == 6 && large.back() == 6 && from.back() == 2, "results");
        }
      },
      sleeps_at_once);
}

TEST_CASE("without fences an abort wakes those who sleep, and a rank that gives up may free its buffers") {
  on_both(
      3,
      [](auto& comm) {
        {
          std::vector<int> lent(100'000, comm.rank());
          if (comm.rank() == 0) {
            for (rank_t const peer : {1, 2})
              while (comm.world().bell(peer).asleep.load() == 0) sched_yield();
            comm.abort();
          } else {
            require(collx::try_all_reduce(comm, lent) == status::aborted, "aborted");
          }
        }
        std::vector<int> const again(100'000, 1);  // where that was, perhaps
        std::uint64_t const until_us = collx::now_us() + 5'000;
        while (collx::now_us() < until_us) sched_yield();
        for (int const each : again) require(each == 1, "a peer has written to it");
      },
      sleeps_at_once);
}
