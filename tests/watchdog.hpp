// SPDX-License-Identifier: Apache-2.0
// Ends a test that hangs, and says where every rank stands. On expiry it first aborts the ranks, so
// that those which wait report what they waited for; a rank that reports nothing is not waiting.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "collx/communicator.hpp"

inline std::chrono::steady_clock::time_point const test_began = std::chrono::steady_clock::now();

// How long ranks may still take, so that `spare_s` are left to say where they stand before ctest ends the
// test without a word: it puts its limit into COLLX_TEST_TIMEOUT_S. A program started by hand has none but
// this. Above the 30 s that a collective waits by default, as long as the limit is.
[[nodiscard]] inline std::chrono::seconds time_left(int spare_s) {
  char const* const limit = std::getenv("COLLX_TEST_TIMEOUT_S");
  if (limit == nullptr) return std::chrono::seconds(100 - spare_s);
  auto const gone = std::chrono::steady_clock::now() - test_began;
  auto const left = std::chrono::seconds(std::atoi(limit) - spare_s) - gone;
  return std::max(std::chrono::seconds(1), std::chrono::duration_cast<std::chrono::seconds>(left));
}

// What the watchdog reads while it ends the test, the ranks may be writing: no news for the thread sanitizer.
#if defined(__SANITIZE_THREAD__)
extern "C" void AnnotateIgnoreReadsBegin(char const* file, int line);
inline void read_what_others_write() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
#else
inline void read_what_others_write() {}
#endif

// For the test of watchdogs, which knows when its ranks hang: once what this points to is true, all bark,
// whatever the clock says. It may lie in memory that processes share.
inline std::atomic<bool> const* hanging = nullptr;

class watchdog {
 public:
  static constexpr int spare_s = 14;
  // So long ranks that wait may take to notice that they are aborted.
  static constexpr std::chrono::seconds time_to_notice{6};
  // Of who waits for processes that have watchdogs of their own: by then those have told.
  static constexpr int spare_of_parent_s = 4;

  explicit watchdog(std::chrono::seconds patience = time_left(spare_s))
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

  struct watching {
    watchdog* dog;
    void* comm;
    ~watching() { dog->remove(comm); }
  };

  // Watches a rank until what is returned ends: `auto const seen = dog.watch(comm);`
  template <class Transport>
  [[nodiscard]] watching watch(collx::communicator<Transport>& comm) {
    add({&comm, [](void* p) { static_cast<collx::communicator<Transport>*>(p)->abort(); },
         [](void* p) { print(*static_cast<collx::communicator<Transport>*>(p)); }});
    return {this, &comm};
  }

 private:
  struct entry {
    void* comm;
    void (*abort)(void*);
    void (*print)(void*);
  };

  void add(entry const& rank) {
    std::lock_guard const only_me(mutex_);
    ranks_.push_back(rank);
  }
  void remove(void* comm) {
    std::lock_guard const only_me(mutex_);
    std::erase_if(ranks_, [&](entry const& rank) {
      // It leaves because it was aborted, perhaps by another process's watchdog: this one may end the process
      // before anybody else tells.
      if (rank.comm == comm && (expired_ || hanging != nullptr)) rank.print(comm);
      return rank.comm == comm;
    });
    changed_.notify_one();
  }

  // Whether the ranks ended in time.
  bool end_in_time(std::unique_lock<std::mutex>& lock) {
    auto const end = std::chrono::steady_clock::now() + patience_;
    if (hanging == nullptr) return changed_.wait_until(lock, end, [&] { return done_; });
    while (!changed_.wait_for(lock, std::chrono::milliseconds(10), [&] { return done_; }))
      if (*hanging || std::chrono::steady_clock::now() >= end) return false;
    return true;
  }

  void watch() {
    std::unique_lock lock(mutex_);
    if (end_in_time(lock)) return;
    std::fprintf(
        stderr,
        "watchdog: ranks have not ended after %lld s; where those that this process runs stand (%zu):\n",
        static_cast<long long>(patience_.count()), ranks_.size());
    expired_ = true;
    for (entry const& rank : ranks_) rank.abort(rank.comm);
    changed_.wait_for(lock, time_to_notice, [&] { return ranks_.empty(); });
    read_what_others_write();
    for (entry const& rank : ranks_) rank.print(rank.comm);
    std::fflush(stderr);
    std::abort();
  }

  // Reads what the rank's thread may be writing: the process ends right afterwards, and a torn
  // number is better than none.
  template <class Transport>
  static void print(collx::communicator<Transport> const& comm) {
    collx::rank_t const rank = comm.rank();
    bool waits = false;
    // A line at a time: processes that end at the same moment write to the same place.
    comm.engine().for_each_in_flight([&](char const* collective, std::uint64_t sequence,
                                         collx::exec::cursor const& at) {
      waits = true;
      auto const number = static_cast<unsigned long long>(sequence);
      if (at.step_count == 0)
        std::fprintf(stderr, "  rank %d: %s #%llu: waits for calls before it\n", rank, collective, number);
      else
        std::fprintf(stderr,
                     "  rank %d: %s #%llu: fragment %zu, step %d of %d, waits for rank %d, %zu bytes\n", rank,
                     collective, number, at.fragment, at.step, at.step_count, at.waits_for, at.bytes);
    });
    if (comm.failure().code != collx::status::ok)
      std::fprintf(stderr, "  rank %d: %s\n", rank, collx::error(comm.failure()).what());
    else if (!waits)
      std::fprintf(stderr, "  rank %d: does not wait (before its collective #%llu, or computing)\n", rank,
                   static_cast<unsigned long long>(comm.engine().sequence()));
  }

  std::chrono::seconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false, expired_ = false;
  std::vector<entry> ranks_;
  std::thread thread_;
};
