// SPDX-License-Identifier: Apache-2.0
// One process's place among those it posts messages to: which communicators there are, and how all of them
// end together. One thread uses all of it, the one that joined; abort() alone may come from any.
#pragma once

#include <utility>

#include <pthread.h>
#include <sched.h>

#include "collx/core/clock.hpp"
#include "collx/transport/mapped/alarm.hpp"
#include "collx/transport/settings.hpp"
#include "collx/transport/zeroed_pages.hpp"

namespace collx::inline abi_1::transport::matched {

// `Derived` is the world itself, and knows the library:
//   is_over()    whether it must not be called any more
//   hear()       looks for word of a failure, and raises the alarm
//   tell_all(f)  starts to tell others of the first failure
//   has_told()   whether that is done
//   give_up()    calls stop_all(), and sees that the library lets go of what it was given
//   number_max() the largest number that its tags have room for
// `Traffic`: what one communicator has under way. A matched::ledger with next, is_idle(), has_receives(),
// trouble_with(peer), progress() and withdraw().
template <class Derived, class Traffic>
class world {
 public:
  static constexpr int lane_count = 4;
  using traffic = Traffic;

  world(world const&) = delete;

  [[nodiscard]] rank_t rank() const noexcept { return rank_; }
  [[nodiscard]] rank_t size() const noexcept { return size_; }
  [[nodiscard]] settings const& chosen() const noexcept { return chosen_; }

  void keep() noexcept { ++references_; }
  COLLX_COLD void drop() noexcept {
    if (--references_ == 0) delete &self();
  }

  // Nobody maps anybody's memory here: symmetric memory is memory.
  [[nodiscard]] std::byte* allocate(std::size_t bytes) { return map_zeroed(bytes); }
  void deallocate(std::byte* p, std::size_t bytes) noexcept { unmap_zeroed(p, bytes); }

  // ---- numbers of communicators, which are in the tags of their messages

  // More than any communicator has had that this rank was in. Small messages of one that has ended may still
  // lie where they came to, if nobody asked for them: with their number they would be taken for another's.
  [[nodiscard]] int next_number() const noexcept { return latest_number_ + 1; }

  COLLX_COLD void enter(traffic& group, int number) noexcept {
    if (number > latest_number_) latest_number_ = number;
    group.next = std::exchange(groups_, &group);
  }

  // A group's last act: sees its messages to their receivers, as long as anybody may take them.
  COLLX_COLD void leave(traffic& group) noexcept {
    std::uint64_t const deadline_us = deadline_in(chosen_.timeout_us);
    // Asked at least once: another thread may have left word of a failure, which is told here or never.
    while (!self().is_over() && interrupted() == status::ok && !group.is_idle() && now_us() < deadline_us) {
      group.progress();
      sched_yield();
    }
    traffic** at = &groups_;
    while (*at != &group) at = &(*at)->next;
    *at = group.next;
  }

  // ---- failures

  [[nodiscard]] COLLX_COLD status interrupted() noexcept {
    self().hear();
    if (!alarm_.raised()) return status::ok;
    give_up_once();
    return status::aborted;
  }

  // From another thread it only leaves word: the thread that owns this tells the others when it next waits,
  // or ends a communicator.
  COLLX_COLD void abort(status code, rank_t reporter, rank_t culprit) noexcept {
    alarm_.raise({code, reporter, culprit});
    if (pthread_equal(owner_, pthread_self()) != 0) give_up_once();
  }
  [[nodiscard]] mapped::first_failure first_failure() const noexcept { return alarm_.read(); }

 protected:
  // What the library may take to let go of what it is given back, and to bring an alarm on its way.
  static constexpr std::uint64_t patience_us = 200'000;

  [[nodiscard]] bool has_failed() const noexcept { return alarm_.raised(); }
  void raise(mapped::first_failure const& what) noexcept { alarm_.raise(what); }
  // Somebody else tells all others.
  void leave_telling() noexcept { told_ = true; }

  // Tells the others, and takes the users' buffers back. False if some were not given back in time.
  COLLX_COLD bool stop_all() noexcept {
    for (traffic* g = groups_; g != nullptr; g = g->next) g->withdraw();
    if (!std::exchange(told_, true)) self().tell_all(alarm_.read());
    return settles_within(patience_us);
  }

  [[nodiscard]] COLLX_COLD bool settles_within(std::uint64_t at_most_us) noexcept {
    std::uint64_t const deadline_us = deadline_in(at_most_us);
    for (;;) {
      bool settled = self().has_told();
      for (traffic* g = groups_; g != nullptr; g = g->next) {
        g->progress();
        settled = settled && !g->has_receives();
      }
      if (settled || now_us() >= deadline_us) return settled;
      sched_yield();
    }
  }

 private:
  friend Derived;
  COLLX_COLD world(rank_t rank, rank_t size, settings const& chosen)
      : rank_(rank), size_(size), chosen_(chosen), owner_(pthread_self()) {}
  ~world() = default;

  [[nodiscard]] Derived& self() noexcept { return static_cast<Derived&>(*this); }

  COLLX_COLD void give_up_once() noexcept {
    if (!std::exchange(gave_up_, true) && !self().is_over()) self().give_up();
  }

  rank_t rank_;
  rank_t size_;
  settings chosen_;
  pthread_t owner_;
  traffic* groups_ = nullptr;
  int latest_number_ = 0;
  mapped::alarm alarm_;
  bool told_ = false, gave_up_ = false;
  std::int32_t references_ = 1;
};

}  // namespace collx::inline abi_1::transport::matched
