// SPDX-License-Identifier: Apache-2.0
// Runs ranks as threads of this process.
#pragma once

#include <exception>
#include <thread>

#include "collx/transport/threads.hpp"

namespace collx::inline abi_1::bootstrap {

// Calls rank_main(communicator&) on `size` threads, one per rank, and returns when all have ended.
// The first exception of a rank aborts the others (they fail with status::aborted) and is rethrown
// here. `Transport`: threads or a decorator of it. Throws error (bad_argument) for a wrong size.
template <class Transport = transport::threads, class RankMain>
void on_threads(rank_t size, RankMain&& rank_main,
                transport::settings const& chosen = transport::settings::from_environment()) {
  transport::require_size("on_threads", size);
  auto* const world = new transport::threads_world(size, chosen);
  array<std::exception_ptr> failures(static_cast<std::size_t>(size));
  array<communicator<Transport>*> members(static_cast<std::size_t>(size));
  // Joined here, so that nobody leaves (and unmaps its block) before everybody is a member.
  for (rank_t r = 0; r < size; ++r)
    members[static_cast<std::size_t>(r)] =
        new communicator<Transport>(transport::threads::join<Transport>(*world, r));
  std::atomic<rank_t> first_failed{no_rank};
  array<std::thread> ranks(static_cast<std::size_t>(size));
  for (rank_t r = 0; r < size; ++r)
    ranks[static_cast<std::size_t>(r)] = std::thread([&, r] {
      std::size_t const i = static_cast<std::size_t>(r);
      try {
        rank_main(*members[i]);
      } catch (...) {
        failures[i] = std::current_exception();
        rank_t nobody_yet = no_rank;
        // Relaxed: read after join(), which orders everything.
        first_failed.compare_exchange_strong(nobody_yet, r, std::memory_order_relaxed);
        members[i]->abort();
      }
    });
  for (std::thread& rank : ranks) rank.join();
  // Memory that peers read is given back only when no peer runs any more.
  for (communicator<Transport>* member : members) delete member;
  world->drop();
  rank_t const failed = first_failed.load(std::memory_order_relaxed);
  if (failed != no_rank) std::rethrow_exception(failures[static_cast<std::size_t>(failed)]);
}

}  // namespace collx::inline abi_1::bootstrap
