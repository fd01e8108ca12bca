// SPDX-License-Identifier: Apache-2.0
// Staging memory of one lane: payloads of private buffers are copied here, read in place by the
// receivers, and reclaimed in order once everybody has read them.
#pragma once

#include <cstddef>

#include "collx/core/types.hpp"

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
    std::uint64_t const at = next_position(rounded, tail_ == marked_);
    if (tail_ == marked_) leave_out(at);
    while (at + rounded - head_ > capacity_)
      if (!reclaim_oldest(acknowledged)) return nullptr;
    tail_ = at + rounded;
    return memory_ + at % capacity_;
  }

  // Where the next payload of this size will lie if it can be had at once.
  [[nodiscard]] std::byte* likely_next(std::size_t bytes) const noexcept {
    return memory_ + next_position((bytes + 63) / 64 * 64, true) % capacity_;
  }

  // Closes a fragment: everything allocated so far is free once each peer has consumed
  // sent(peer) letters.
  template <class Sent>
  void mark(Sent const& sent) noexcept {
    if (tail_ == marked_) return;
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
  // Whoever reads a payload makes its processor fetch the lines behind it too: were the next payload
  // there, they would be taken from its writer. Worth 0.06 us at 128 bytes.
  static constexpr std::size_t spacing_bytes = 512;

  // Payloads are contiguous: skip the end of the ring if one does not fit. Where a fragment begins
  // (and only there: one that was made to fit has no memory to skip) it keeps its distance from the
  // last, and small ones turn round early, so that a stream of them stays in the first-level cache.
  [[nodiscard]] std::uint64_t next_position(std::size_t rounded, bool begins_fragment) const noexcept {
    std::uint64_t const begin =
        begins_fragment ? (tail_ + spacing_bytes - 1) / spacing_bytes * spacing_bytes : tail_;
    std::uint64_t const offset = begin % capacity_;
    bool const turn_early = begins_fragment && rounded <= small_bytes && offset >= mark_count * small_bytes;
    return offset + rounded > capacity_ || turn_early ? begin + capacity_ - offset : begin;
  }

  // A fragment begins at `at`. What is skipped before it goes with the fragment before.
  void leave_out(std::uint64_t at) noexcept {
    if (oldest_ == newest_) head_ = at;
    else position_[(newest_ - 1) % mark_count] = at;
    tail_ = marked_ = at;
  }

  template <class Acknowledged>
  bool reclaim_oldest(Acknowledged const& acknowledged) noexcept {
    if (oldest_ == newest_) {
      // Nothing is outstanding but the current fragment, which the geometry made to fit.
      if (marked_ != tail_ || head_ == tail_) return false;
      head_ = tail_;
      return true;
    }
    std::uint64_t const* const snapshot =
        snapshots_ + oldest_ % mark_count * static_cast<std::uint64_t>(size_);
    for (rank_t peer = 0; peer < size_; ++peer)
      if (!acknowledged(peer, snapshot[peer])) return false;
    head_ = position_[oldest_ % mark_count];
    ++oldest_;
    return true;
  }

  std::byte* memory_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t* snapshots_ = nullptr;
  rank_t size_ = 0;
  std::uint64_t head_ = 0, tail_ = 0, marked_ = 0;
  std::uint64_t oldest_ = 0, newest_ = 0;
  std::uint64_t position_[mark_count] = {};
};

}  // namespace collx::inline abi_1::transport
