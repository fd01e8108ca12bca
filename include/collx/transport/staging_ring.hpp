// SPDX-License-Identifier: Apache-2.0
// Staging memory of one lane: payloads of private buffers are copied here, read in place by the
// receivers, and reclaimed in order once everybody has read them.
#pragma once

#include <cstddef>

#include "collx/core/array.hpp"
#include "collx/core/config.hpp"
#include "collx/core/types.hpp"
#include "collx/device/cpu.hpp"

namespace collx::inline abi_1::transport {

// Positions grow for ever; a position modulo the capacity is a place in the ring. A mark remembers,
// for a fragment, the position behind its last payload and how many letters each peer had been sent
// by then: when every peer has acknowledged that many, the memory before the mark is free.
class staging_ring {
 public:
  static constexpr std::uint64_t mark_count = 16;

  // `snapshots` has room for mark_count * size numbers and lives as long as the ring.
  void attach(std::byte* memory, std::size_t capacity_bytes, std::uint64_t* snapshots, rank_t size) noexcept {
    memory_ = memory;
    capacity_ = capacity_bytes;
    snapshots_ = snapshots;
    size_ = size;
  }

  // Memory for one payload, aligned to a cache line, or null while receivers still read what lies
  // there. `acknowledged(peer, count)` tells whether peer has consumed its first `count` letters.
  template <class Acknowledged>
  [[nodiscard]] std::byte* allocate(std::size_t bytes, Acknowledged const& acknowledged) noexcept {
    std::size_t const rounded = (bytes + 63) / 64 * 64;
    place_in_ring next = find_place(rounded, is_marked());
    // Who is told that there is no room asks again: until it has some, nothing is left out for it.
    while (!fits(next, rounded)) {
      if (reclaim_oldest(acknowledged)) continue;
      if (!is_marked()) return nullptr;
      if (oldest_ == newest_) break;  // all is free, the room at the ring's end too
      if (!find_beyond_unread(rounded, next)) return nullptr;
    }
    if (next.position - next.offset != turn_) before_ends_ = tail_ - turn_;
    if (is_marked()) leave_out(next);
    turn_ = next.position - next.offset;
    tail_ = next.position + rounded;
    return memory_ + next.offset;
  }

  // After allocate() has found no room: the rank that has not yet read what lies there.
  [[nodiscard]] rank_t held_by() const noexcept { return held_by_; }

  // Not where somebody else hands out the memory (transport/composite.hpp).
  [[nodiscard]] bool is_used() const noexcept { return tail_ != 0; }

  // Where the next payload of this size will lie if it can be had at once.
  [[nodiscard]] std::byte* likely_next(std::size_t bytes) const noexcept {
    return memory_ + find_place((bytes + 63) / 64 * 64, true).offset;
  }

  // Whether mark() has nothing to close.
  [[nodiscard]] bool is_marked() const noexcept { return tail_ == marked_; }

  // Closes a fragment: everything allocated so far is free once each peer has consumed
  // sent(peer) letters.
  template <class Sent>
  void mark(Sent const& sent) noexcept {
    if (is_marked()) return;
    // With all marks in use the newest is extended: it is then reclaimed a little later.
    if (newest_ - oldest_ == mark_count) --newest_;
    position_[newest_ % mark_count] = tail_;
    std::uint64_t* const snapshot = snapshots_ + newest_ % mark_count * static_cast<std::uint64_t>(size_);
    for (rank_t peer = 0; peer < size_; ++peer) snapshot[peer] = sent(peer);
    ++newest_;
    marked_ = tail_;
  }

 private:
  static constexpr std::size_t small_bytes = 4096;
  // Whoever reads a payload makes its processor fetch lines behind it too, up to 20 of them: were the
  // next payload there, they would be taken from its writer. Worth 0.04 us at 512 bytes, 0.1 at 2 KiB. Large
  // payloads do without: two fragments that each fill half of the ring must fit in it.
  static constexpr std::size_t distance_bytes = 1536;
  static constexpr std::size_t alignment_bytes = 512;

  // Up to here a stream stays in the first-level cache. Of longer ones the next would lie where its readers
  // have the lines, unless those come quickly.
  [[nodiscard]] static std::size_t kept_close_bytes_max() noexcept {
    return device::cpu::takes_lines_slowly ? 1024 : small_bytes;
  }

  struct place_in_ring {
    std::uint64_t position, offset;  // offset: from the begin of the memory
  };

  // Payloads are contiguous: skip the end of the ring if one does not fit. Where a fragment begins
  // (and only there: one that was made to fit has no memory to skip) it keeps its distance from the
  // last, and those that are kept close turn round early.
  [[nodiscard]] place_in_ring find_place(std::size_t rounded, bool begins_fragment,
                                         bool may_turn_early = true) const noexcept {
    bool const is_small = begins_fragment && rounded <= small_bytes;
    std::uint64_t begin = tail_ + (is_small ? distance_bytes : 0);
    if (begins_fragment) begin = (begin + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    // A division would cost more than the rest. The tail lies in the turn, or just behind its end.
    std::uint64_t offset = begin - turn_;
    if (offset >= capacity_) offset -= capacity_;
    bool const turn_early =
        is_small && may_turn_early && rounded <= kept_close_bytes_max() && offset >= mark_count * small_bytes;
    if (offset + rounded > capacity_ || turn_early) return {begin + capacity_ - offset, 0};
    return {begin, offset};
  }

  // In the turn before, nothing lies behind its end.
  [[nodiscard]] bool fits(place_in_ring const& next, std::size_t rounded) const noexcept {
    if (COLLX_LIKELY(next.position + rounded - head_ <= capacity_)) return true;
    return next.position - next.offset == turn_ && next.offset >= before_ends_;
  }
  // For a fragment, where somebody still reads at the ring's begin, or what lies ahead in it, while all
  // behind that, which was left out by turning early, is free: a message that nobody takes must not keep
  // others back.
  [[nodiscard]] COLLX_NEVER_INLINE bool find_beyond_unread(std::size_t rounded,
                                                           place_in_ring& next) const noexcept {
    next = find_place(rounded, true, false);
    if (fits(next, rounded)) return true;
    std::uint64_t const offset = (before_ends_ + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    bool const is_ahead = next.position - next.offset == turn_ && next.offset < offset;
    if (!is_ahead || offset + rounded > capacity_) return false;
    next = {turn_ + offset, offset};
    return true;
  }

  // A fragment begins at `next`. What is skipped before it goes with the fragment before.
  void leave_out(place_in_ring const& next) noexcept {
    if (oldest_ == newest_) head_ = next.position;
    else position_[(newest_ - 1) % mark_count] = next.position;
    tail_ = marked_ = next.position;
    turn_ = next.position - next.offset;
  }

  template <class Acknowledged>
  bool reclaim_oldest(Acknowledged const& acknowledged) noexcept {
    if (oldest_ == newest_) {
      // Nothing is outstanding but the current fragment, which the geometry made to fit.
      held_by_ = no_rank;
      if (marked_ != tail_ || head_ == tail_) return false;
      head_ = tail_;
      return true;
    }
    std::uint64_t const* const snapshot =
        snapshots_ + oldest_ % mark_count * static_cast<std::uint64_t>(size_);
    for (rank_t peer = 0; peer < size_; ++peer)
      if (!acknowledged(peer, snapshot[peer])) {
        held_by_ = peer;
        return false;
      }
    head_ = position_[oldest_ % mark_count];
    ++oldest_;
    return true;
  }

  std::byte* memory_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t* snapshots_ = nullptr;
  rank_t size_ = 0, held_by_ = no_rank;
  std::uint64_t head_ = 0, tail_ = 0, marked_ = 0;
  std::uint64_t turn_ = 0;         // the position at the begin of the memory, in the tail's turn of the ring
  std::uint64_t before_ends_ = 0;  // the offset of the tail when the turn before ended
  std::uint64_t oldest_ = 0, newest_ = 0;
  std::uint64_t position_[mark_count] = {};
};

// The rings of all lanes of an endpoint, with what they remember of its peers. Each is attached before its
// use.
template <int Lanes>
class staging_rings {
 public:
  explicit staging_rings(rank_t size)
      : snapshots_(Lanes * staging_ring::mark_count * static_cast<std::size_t>(size)), size_(size) {}

  void attach(int lane, std::byte* memory, std::size_t capacity_bytes) noexcept {
    std::size_t const of_lane = snapshots_.size() / Lanes;
    std::uint64_t* const remembered = snapshots_.data() + static_cast<std::size_t>(lane) * of_lane;
    rings_[lane].attach(memory, capacity_bytes, remembered, size_);
  }
  [[nodiscard]] staging_ring& operator[](int lane) noexcept { return rings_[lane]; }

 private:
  array<std::uint64_t> snapshots_;
  rank_t size_;
  staging_ring rings_[static_cast<std::size_t>(Lanes)];
};

}  // namespace collx::inline abi_1::transport
