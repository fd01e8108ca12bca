// SPDX-License-Identifier: Apache-2.0
// Ends a test that hangs, and says where every rank stands. On expiry it first aborts the ranks, so
// that those which wait report what they waited for; a rank that reports nothing is not waiting.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "collx/communicator.hpp"

class watchdog {
 public:
  explicit watchdog(std::chrono::seconds patience = std::chrono::seconds(60))
      : patience_(patience), thread_([this] { watch(); }) {}
  watchdog(watchdog const&) = delete;
  ~watchdog() {
    {
      std::lock_guard const only_me(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  // Watches a rank until what is returned ends: `auto const watched = dog.watch(comm);`
  template <class Transport>
  [[nodiscard]] auto watch(collx::communicator<Transport>& comm) {
    add({&comm, comm.rank(), [](void* p) { static_cast<collx::communicator<Transport>*>(p)->abort(); },
         [](void* p) { print(*static_cast<collx::communicator<Transport>*>(p)); }});
    struct forgets {
      watchdog* dog;
      void* comm;
      ~forgets() { dog->remove(comm); }
    };
    return forgets{this, &comm};
  }

 private:
  struct watched {
    void* comm;
    collx::rank_t rank;
    void (*abort)(void*);
    void (*print)(void*);
  };

  void add(watched const& rank) {
    std::lock_guard const only_me(mutex_);
    ranks_.push_back(rank);
  }
  void remove(void* comm) {
    std::lock_guard const only_me(mutex_);
    std::erase_if(ranks_, [&](watched const& rank) { return rank.comm == comm; });
  }

  void watch() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, patience_, [&] { return done_; })) return;
    std::fprintf(stderr, "watchdog: the test has not ended after %lld s; where its ranks stand:\n",
                 static_cast<long long>(patience_.count()));
    for (watched const& rank : ranks_) rank.abort(rank.comm);
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::seconds(2));  // for the ranks to notice
    lock.lock();
    for (watched const& rank : ranks_) rank.print(rank.comm);
    std::fflush(stderr);
    std::abort();
  }

  // Reads what the rank's thread may be writing: the process ends right afterwards, and a torn
  // number is better than none.
  template <class Transport>
  static void print(collx::communicator<Transport> const& comm) {
    collx::rank_t const rank = comm.rank();
    comm.engine().for_each_in_flight([&](char const* collective, std::uint64_t sequence,
                                         collx::exec::cursor const& at) {
      std::fprintf(stderr, "  rank %d: %s #%llu: fragment %zu, step %d of %d, waits for rank %d, %zu bytes\n",
                   rank, collective, static_cast<unsigned long long>(sequence), at.fragment, at.step,
                   at.step_count, at.waits_for, at.bytes);
    });
    if (comm.failure().code == collx::status::ok)
      std::fprintf(stderr, "  rank %d: does not wait (before its collective #%llu, or computing)\n", rank,
                   static_cast<unsigned long long>(comm.engine().sequence()));
    else std::fprintf(stderr, "  rank %d: %s\n", rank, collx::error(comm.failure()).what());
  }

  std::chrono::seconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::vector<watched> ranks_;
  std::thread thread_;
};
