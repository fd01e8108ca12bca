// SPDX-License-Identifier: Apache-2.0
// A GPU played by threads: streams that do what they hold, in order, and engines that copy. Its memory is
// ordinary memory that nobody else touches.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>

#include "collx/core/error.hpp"
#include "collx/transport/copier.hpp"

namespace played_gpu {

using namespace collx;

// Does what it is given, one after the other, in a thread of its own.
class queue {
 public:
  queue() : thread_([this] { serve(); }) {}
  queue(queue const&) = delete;
  ~queue() {
    put({});
    thread_.join();
  }

  void put(std::function<void()> what) {
    std::lock_guard const only_me(mutex_);
    work_.push_back(std::move(what));
    changed_.notify_all();
  }
  // Until everything that was put in is done.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return work_.empty() && !busy_; });
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !work_.empty(); });
      std::function<void()> const next = std::move(work_.front());
      work_.pop_front();
      if (!next) return;
      busy_ = true;
      lock.unlock();
      next();
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool busy_ = false;
  std::thread thread_;
};

class copier {
 public:
  using stream = queue*;

  explicit copier(std::size_t half_bytes, int device = 0)
      : device_(device), half_bytes_(half_bytes), memory_(2 * half_bytes) {}

  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] std::size_t half_bytes() const { return half_bytes_; }
  [[nodiscard]] std::byte* staging(int half) {
    return memory_.data() + static_cast<std::size_t>(half) * half_bytes_;
  }
  [[nodiscard]] std::uint32_t* word(int i) { return &words_[i]; }

  [[nodiscard]] status fetch(int half, transport::copied_rows const& rows) noexcept {
    order_ += half == 0 ? "f0 " : "f1 ";
    return copy(fetches_, half, rows);
  }
  [[nodiscard]] status store(int half, transport::copied_rows const& rows) noexcept {
    order_ += half == 0 ? "s0 " : "s1 ";
    return copy(stores_, half, rows);
  }
  [[nodiscard]] status fetched(int half) noexcept { return state(fetches_, half); }
  [[nodiscard]] status stored(int half) noexcept { return state(stores_, half); }

  // Relaxed: a flag, nothing more.
  [[nodiscard]] status state() const noexcept {
    return died_.load(std::memory_order_relaxed) ? status::system_failure : status::ok;
  }
  // Streams stand still from here on, or are about to: the test sees to that.
  void die() noexcept { died_.store(true, std::memory_order_relaxed); }

  void mark(stream where, std::uint32_t* word, std::uint32_t value) {
    where->put([=] { std::atomic_ref(*word).store(value, std::memory_order_release); });
  }
  void hold(stream where, std::uint32_t* word, std::uint32_t value) {
    if (refuses_hold_) throw error(status::system_failure, "the driver does not let the stream wait");
    where->put([=] {
      auto const is_before = [&] {
        return static_cast<std::int32_t>(std::atomic_ref(*word).load(std::memory_order_acquire) - value) < 0;
      };
      while (is_before()) sched_yield();
    });
  }

  // Which half was fetched into and which stored from, in the order in which it was asked for. When
  // nobody drives any more.
  [[nodiscard]] std::string const& order() const { return order_; }

  // Until all copies that were asked for are done, by whoever does not drive any more.
  void wait() {
    fetches_.engine.wait();
    stores_.engine.wait();
  }

  // Whether hold() throws from here on.
  void refuse_hold(bool refused) { refuses_hold_ = refused; }

  // Of results, each.
  void slow_stores(std::chrono::milliseconds each) { store_takes_ = each; }

  // Copies end with this from the n-th one on (0: the next).
  void fail_after(int n) { fails_after_ = n; }

 private:
  struct direction {
    std::atomic<int> queued[2]{}, done[2]{};
    queue engine;
  };

  [[nodiscard]] status copy(direction& way, int half, transport::copied_rows const& rows) noexcept {
    if (fails_after_ >= 0 && fails_after_-- == 0) return status::system_failure;
    // Relaxed: read by the thread that queues.
    way.queued[half].fetch_add(1, std::memory_order_relaxed);
    way.engine.put([&way, half, rows, slow = &way == &stores_ ? store_takes_ : std::chrono::milliseconds(0)] {
      std::this_thread::sleep_for(slow);
      for (std::size_t r = 0; r < rows.rows && rows.width_bytes != 0; ++r)
        std::memcpy(rows.to + r * rows.to_pitch, rows.from + r * rows.from_pitch, rows.width_bytes);
      // Release: what was copied is there.
      way.done[half].fetch_add(1, std::memory_order_release);
    });
    return status::ok;
  }
  [[nodiscard]] static status state(direction& way, int half) noexcept {
    bool const all =
        way.done[half].load(std::memory_order_acquire) == way.queued[half].load(std::memory_order_relaxed);
    return all ? status::ok : status::pending;
  }

  int device_;
  std::size_t half_bytes_;
  std::vector<std::byte> memory_;
  std::uint32_t words_[64] = {};
  std::string order_;  // of the thread that drives
  direction fetches_, stores_;
  int fails_after_ = -1;
  std::chrono::milliseconds store_takes_{0};
  bool refuses_hold_ = false;
  std::atomic<bool> died_{false};
};

static_assert(transport::copier<copier>);

}  // namespace played_gpu
