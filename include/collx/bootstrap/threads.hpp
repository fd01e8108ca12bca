// SPDX-License-Identifier: Apache-2.0
// Runs ranks as threads of this process.
#pragma once

#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <thread>

#include "collx/core/futex.hpp"
#include "collx/transport/threads.hpp"

namespace collx::inline abi_1::bootstrap {

namespace detail {

// Threads that wait until all of them are there; then each calls body(number). Where the system refuses one
// none does, and this throws error (system_failure). Returns when all have ended.
template <class Body>
void run_together(rank_t size, Body const& body) {
  enum : std::uint32_t { unknown, all_are_there, one_is_missing };
  atomic_word<std::uint32_t> news{unknown};
  array<std::thread> threads(static_cast<std::size_t>(size));
  rank_t started = 0;
  int problem = 0;
  try {
    for (; started < size; ++started)
      threads[static_cast<std::size_t>(started)] = std::thread([&, number = started] {
        // Relaxed: what is read besides was there before the thread.
        while (news.load(std::memory_order_relaxed) == unknown) (void)futex_sleep(news, unknown, 10'000'000);
        if (news.load(std::memory_order_relaxed) == all_are_there) body(number);
      });
  } catch (std::system_error const& refused) {
    problem = refused.code().value();
  } catch (std::bad_alloc const&) {
    problem = ENOMEM;
  }
  // Relaxed: only the news itself is told.
  news.store(started == size ? all_are_there : one_is_missing, std::memory_order_relaxed);
  futex_wake_all(news);
  for (rank_t t = 0; t < started; ++t) threads[static_cast<std::size_t>(t)].join();
  if (started != size)
    throw_error(
        status::system_failure,
        "on_threads: the system refuses a thread for rank %d of %d: %s; start fewer ranks, or raise the "
        "limits on threads (ulimit -u, pids.max of the control group) and on memory (ulimit -v)",
        started, size, std::strerror(problem));
}

}  // namespace detail

// Calls rank_main(communicator&) on `size` threads, one per rank, and returns when all have ended.
// The first exception of a rank aborts the others (they fail with status::aborted) and is rethrown
// here. `Transport`: threads or a decorator of it. Throws error: bad_argument for a wrong size, out_of_memory
// or system_failure where there are not so many blocks or threads to be had, or std::bad_alloc; then
// rank_main has not been called at all.
template <class Transport = transport::threads, class RankMain>
void on_threads(rank_t size, RankMain&& rank_main,
                transport::settings const& chosen = transport::settings::from_environment()) {
  using callable = std::remove_reference_t<RankMain> const&;
  static_assert(std::is_invocable_v<callable, communicator<Transport>&>,
                "collx: all ranks call this one object at the same time: it must be callable where it is "
                "const; make a rank's variables inside");
  static_assert(std::is_void_v<std::invoke_result_t<callable, communicator<Transport>&>>,
                "collx: on_threads hands nothing back: throw, or write to what the function refers to");
  transport::require_size("on_threads", size);
  array<std::exception_ptr> failures(static_cast<std::size_t>(size));
  array<communicator<Transport>*> members(static_cast<std::size_t>(size));
  // Memory that peers read is given back only when no peer runs any more. Null: could not join.
  struct at_the_end {
    array<communicator<Transport>*> const& members;
    transport::threads_world* world;
    ~at_the_end() {
      for (communicator<Transport>* member : members) delete member;
      world->drop();
    }
  };
  std::atomic<rank_t> first_failed{no_rank};
  {
    at_the_end const leaves{members, new transport::threads_world(size, chosen)};
    // Joined here, so that nobody leaves (and unmaps its block) before everybody is a member.
    for (rank_t r = 0; r < size; ++r)
      members[static_cast<std::size_t>(r)] =
          new communicator<Transport>(transport::threads::join<Transport>(*leaves.world, r));
    detail::run_together(size, [&](rank_t r) {
      std::size_t const i = static_cast<std::size_t>(r);
      try {
        rank_main(*members[i]);
      } catch (...) {
        failures[i] = std::current_exception();
        rank_t nobody_yet = no_rank;
        // Relaxed: read after join(), which orders everything.
        first_failed.compare_exchange_strong(nobody_yet, r, std::memory_order_relaxed);
        members[i]->abort();
        leaves.world->abort(status::aborted, r, no_rank);  // that may have been moved
      }
    });
  }
  rank_t const failed = first_failed.load(std::memory_order_relaxed);
  if (failed != no_rank) std::rethrow_exception(failures[static_cast<std::size_t>(failed)]);
}

}  // namespace collx::inline abi_1::bootstrap
