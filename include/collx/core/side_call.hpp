// SPDX-License-Identifier: Apache-2.0
// A call that may never return, such as those that wait for another program: made by a thread of its own,
// which is left to itself if it takes too long. POSIX's threads, since <thread> brings <chrono> with it
// (clock.hpp).
#pragma once

#include <pthread.h>

#include <cstring>

#include "collx/core/atomic_word.hpp"
#include "collx/core/clock.hpp"
#include "collx/core/error.hpp"
#include "collx/core/futex.hpp"

namespace collx::inline abi_1 {

// All that the thread touches belongs to it as well: whoever asked may have gone, and freed what was theirs.
template <class Answer>
class side_call {
 public:
  // what(answer) is called, with an Answer that was made by default. `what` is moved or copied, and must not
  // refer to anything of the caller's, nor throw. Throws error (system_failure) if there is no thread.
  template <class What>
  COLLX_COLD side_call(char const* name, What what) : task_(new task_of<What>(static_cast<What&&>(what))) {
    pthread_t thread;
    int const failed = pthread_create(&thread, nullptr, run, task_);
    if (failed == 0) {
      (void)pthread_detach(thread);
      return;
    }
    delete task_;
    throw_error(status::system_failure, "%s: no thread for it: %s; raise the limit on processes", name,
                std::strerror(failed));
  }
  side_call(side_call const&) = delete;
  ~side_call() { task_->let_go(); }

  // False: it has not ended by then.
  [[nodiscard]] bool wait_until(std::uint64_t deadline_us) const noexcept {
    // Acquires what the thread has written to the answer.
    while (task_->ended.load(std::memory_order_acquire) == 0) {
      std::uint64_t const now = now_us();
      if (now >= deadline_us) return false;
      (void)futex_sleep(task_->ended, 0, deadline_us - now);
    }
    return true;
  }
  // Once it has ended.
  [[nodiscard]] Answer const& answer() const noexcept { return task_->answer; }

 private:
  struct task {
    virtual ~task() = default;
    virtual void call() = 0;
    // Whoever lets go last deletes it: both releases what it did with it, and acquires what the other did.
    void let_go() noexcept {
      if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    Answer answer{};
    atomic_word<std::uint32_t> ended{0};
    atomic_word<std::uint32_t> owners{2};  // the thread, and who has asked
  };

  template <class What>
  struct task_of final : task {
    explicit task_of(What&& made) : what(static_cast<What&&>(made)) {}
    void call() override { what(this->answer); }
    What what;
  };

  static void* run(void* which) noexcept {
    auto* const mine = static_cast<task*>(which);
    mine->call();
    mine->ended.store(1, std::memory_order_release);  // the answer is complete
    futex_wake_all(mine->ended);
    mine->let_go();
    return nullptr;
  }

  task* task_;
};

}  // namespace collx::inline abi_1
