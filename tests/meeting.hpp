// SPDX-License-Identifier: Apache-2.0
// Where ranks that are threads meet, on no communicator. A rank that is through a collective, even a barrier,
// is ahead of others that are still in it; if it then provokes a failure, theirs fails. Not after a meeting.
#pragma once

#include <atomic>
#include <stdexcept>
#include <thread>

#include "collx/communicator.hpp"

class meeting {
 public:
  explicit meeting(collx::rank_t ranks) : ranks_(ranks) {}
  meeting(meeting const&) = delete;

  // Returns when all ranks have come. Throws if one gave up before: it will not come.
  template <class Transport>
  void attend(collx::communicator<Transport>& world) {
    // Acquire-release: what every rank did before is done.
    came_.fetch_add(1, std::memory_order_acq_rel);
    while (!complete()) {
      bool const ended = world.engine().endpoint().interrupted(collx::no_rank) != collx::status::ok;
      // Asked again: who has met all the others may have ended the world since, as it is meant to.
      if (ended && !complete()) throw std::runtime_error("a rank has given up before all had met");
      std::this_thread::yield();
    }
  }

 private:
  // Not a load: what this rank looked at before it must not be looked at afterwards.
  [[nodiscard]] bool complete() { return came_.fetch_add(0, std::memory_order_acq_rel) == ranks_; }

  collx::rank_t ranks_;
  std::atomic<collx::rank_t> came_{0};
};
