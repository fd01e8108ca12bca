// SPDX-License-Identifier: Apache-2.0
// One process's place among those it talks to over MPI: the duplicated communicator, which communicators of
// ours share it, and the alarm. One thread uses all of it, the one that joined; abort() alone may come from
// any.
#pragma once

#include <utility>

#include <pthread.h>

#include "collx/core/array.hpp"
#include "collx/core/clock.hpp"
#include "collx/transport/mapped/alarm.hpp"
#include "collx/transport/mpi/traffic.hpp"
#include "collx/transport/settings.hpp"

namespace collx::inline abi_1::transport {

class mpi_world {
 public:
  static constexpr int lane_count = 4;
  // Communicators that may exist at once and have a rank in common. Their tags are below 32767, the least
  // that MPI promises.
  static constexpr int communicators_max = 64;
  using traffic = mpi_parts::traffic;

  // Takes over `comm`, whose errors must be returned. `ranks_here`: on this host.
  COLLX_COLD mpi_world(MPI_Comm comm, rank_t rank, rank_t size, rank_t ranks_here, settings const& chosen)
      : comm_(comm),
        rank_(rank),
        size_(size),
        ranks_here_(ranks_here),
        chosen_(chosen),
        owner_(pthread_self()),
        spoken_(static_cast<std::size_t>(size)) {
    for (MPI_Request& each : spoken_) each = MPI_REQUEST_NULL;
    listen();
  }
  mpi_world(mpi_world const&) = delete;

  [[nodiscard]] MPI_Comm comm() const noexcept { return comm_; }
  [[nodiscard]] rank_t rank() const noexcept { return rank_; }
  [[nodiscard]] rank_t size() const noexcept { return size_; }
  [[nodiscard]] rank_t ranks_here() const noexcept { return ranks_here_; }
  [[nodiscard]] settings const& chosen() const noexcept { return chosen_; }

  void keep() noexcept { ++references_; }
  COLLX_COLD void drop() noexcept {
    if (--references_ == 0) delete this;
  }

  // Nobody maps anybody's memory here: symmetric memory is memory.
  [[nodiscard]] std::byte* allocate(std::size_t bytes) { return map_zeroed(bytes); }
  void deallocate(std::byte* p, std::size_t bytes) noexcept { unmap_zeroed(p, bytes); }

  // ---- numbers of communicators: their tags, no MPI_Comm. Making one of those for a part of the ranks takes
  // more time, and freeing it is for all its ranks together, who end theirs when they like.

  // Bit i: no communicator that this rank is in has the number i.
  [[nodiscard]] std::uint64_t free_numbers() const noexcept { return ~taken_; }
  [[nodiscard]] static constexpr int first_tag(int number) noexcept {
    return alarm_tag + 1 + number * lane_count;
  }

  COLLX_COLD void enter(traffic& group, int number) noexcept {
    taken_ |= std::uint64_t{1} << number;
    group.next = std::exchange(groups_, &group);
  }

  // A group's last act: sees its messages to their receivers, as long as anybody may take them.
  COLLX_COLD void leave(traffic& group, int number) noexcept {
    std::uint64_t const deadline_us = now_us() + chosen_.timeout_us;
    while (!is_finalized() && !group.is_idle() && interrupted() == status::ok && now_us() < deadline_us) {
      group.progress();
      sched_yield();
    }
    taken_ &= ~(std::uint64_t{1} << number);
    traffic** at = &groups_;
    while (*at != &group) at = &(*at)->next;
    *at = group.next;
  }

  // ---- failures

  [[nodiscard]] COLLX_COLD status interrupted() noexcept {
    hear();
    if (!alarm_.raised()) return status::ok;
    give_up();
    return status::aborted;
  }

  // From another thread it only leaves word: the thread that uses MPI tells the others when it next waits.
  COLLX_COLD void abort(status code, rank_t reporter, rank_t culprit) noexcept {
    alarm_.raise({code, reporter, culprit});
    if (pthread_equal(owner_, pthread_self()) != 0) give_up();
  }
  [[nodiscard]] mapped::first_failure first_failure() const noexcept { return alarm_.read(); }

 private:
  static constexpr int alarm_tag = 1;
  static_assert(alarm_tag + communicators_max * lane_count < 32767);
  // What MPI may take to let go of what it is given back, and to bring an alarm on its way.
  static constexpr std::uint64_t patience_us = 200'000;

  struct alarm_message {
    std::int32_t code, reporter, culprit;
  };

  COLLX_COLD ~mpi_world() {
    if (is_finalized()) return;
    if (ear_ != MPI_REQUEST_NULL) {
      (void)MPI_Cancel(&ear_);
      (void)MPI_Wait(&ear_, MPI_STATUS_IGNORE);
    }
    // Freeing is for all ranks together: after a failure not all may come.
    if (!alarm_.raised()) (void)MPI_Comm_free(&comm_);
  }

  [[nodiscard]] static bool is_finalized() noexcept {
    int finalized = 0;
    return MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0;
  }

  COLLX_COLD void listen() noexcept {
    if (MPI_Irecv(&heard_, sizeof heard_, MPI_BYTE, MPI_ANY_SOURCE, alarm_tag, comm_, &ear_) != MPI_SUCCESS)
      ear_ = MPI_REQUEST_NULL;
  }

  COLLX_COLD void hear() noexcept {
    int came = 0;
    if (ear_ == MPI_REQUEST_NULL) return;
    if (MPI_Test(&ear_, &came, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
      ear_ = MPI_REQUEST_NULL;  // deadlines remain
      return;
    }
    if (came == 0) return;
    alarm_.raise({static_cast<status>(heard_.code), heard_.reporter, heard_.culprit});
    told_ = true;  // by whoever says so, to all
    listen();      // others may have failed at the same time
  }

  // Tells everybody, and takes the users' buffers back from MPI.
  COLLX_COLD void give_up() noexcept {
    if (std::exchange(gave_up_, true) || is_finalized()) return;
    for (traffic* g = groups_; g != nullptr; g = g->next) g->withdraw();
    if (!std::exchange(told_, true)) tell_all();
    std::uint64_t const deadline_us = now_us() + patience_us;
    while (now_us() < deadline_us && !is_settled()) sched_yield();
  }

  COLLX_COLD void tell_all() noexcept {
    mapped::first_failure const first = alarm_.read();
    said_ = {static_cast<std::int32_t>(first.code), first.reporter, first.culprit};
    for (rank_t peer = 0; peer < size_; ++peer) {
      MPI_Request& request = spoken_[static_cast<std::size_t>(peer)];
      if (peer == rank_) continue;
      if (MPI_Isend(&said_, sizeof said_, MPI_BYTE, peer, alarm_tag, comm_, &request) != MPI_SUCCESS)
        request = MPI_REQUEST_NULL;
    }
  }

  [[nodiscard]] COLLX_COLD bool is_settled() noexcept {
    int sent = 0;
    bool receives = false;
    (void)MPI_Testall(static_cast<int>(spoken_.size()), spoken_.data(), &sent, MPI_STATUSES_IGNORE);
    for (traffic* g = groups_; g != nullptr; g = g->next) {
      g->progress();
      receives = receives || g->has_receives();
    }
    return sent != 0 && !receives;
  }

  MPI_Comm comm_;
  rank_t rank_;
  rank_t size_;
  rank_t ranks_here_;
  settings chosen_;
  pthread_t owner_;
  traffic* groups_ = nullptr;
  std::uint64_t taken_ = 0;
  mapped::alarm alarm_;
  alarm_message heard_{}, said_{};
  MPI_Request ear_ = MPI_REQUEST_NULL;
  array<MPI_Request> spoken_;
  bool told_ = false, gave_up_ = false;
  std::int32_t references_ = 1;
};

}  // namespace collx::inline abi_1::transport
