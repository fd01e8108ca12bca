// SPDX-License-Identifier: Apache-2.0
// Blocks of shared memory whose owners have left their communicator. Peers may still write letters
// into one and read what was staged there, so it is given back when every member has left.
#pragma once

#include "collx/core/mutex.hpp"
#include "collx/transport/mapped/layout.hpp"

namespace collx::inline abi_1::transport::mapped {

class retired_blocks {
 public:
  // `last` lies in its block, and its owner has counted itself out of all blocks. `release(block,
  // bytes)` is called for every block that nobody uses any more.
  template <class Release>
  void add(farewell& last, Release const& release) noexcept {
    posix_lock const only_me(mutex_);
    last.next = first_;
    first_ = &last;
    sweep(release);
  }

  template <class Release>
  void release_unused(Release const& release) noexcept {
    posix_lock const only_me(mutex_);
    sweep(release);
  }

 private:
  template <class Release>
  void sweep(Release const& release) noexcept {
    for (farewell** link = &first_; *link != nullptr;) {
      farewell& last = **link;
      // Acquire: what the members did with the block, they did before it is reused.
      if (last.departed.load(std::memory_order_acquire) < last.members) {
        link = &last.next;
      } else {
        *link = last.next;
        release(last.block, last.bytes);
      }
    }
  }

  posix_mutex mutex_;
  farewell* first_ = nullptr;
};

}  // namespace collx::inline abi_1::transport::mapped
