// SPDX-License-Identifier: Apache-2.0
// What a mapped endpoint knows of one peer on one lane, and the letters between them.
#pragma once

#include "collx/core/config.hpp"
#include "collx/device/cache_hint.hpp"
#include "collx/device/copy_few.hpp"
#include "collx/transport/concept.hpp"
#include "collx/transport/mapped/doorbell.hpp"
#include "collx/transport/mapped/layout.hpp"

namespace collx::inline abi_1::transport::mapped {

// A place in an inbox: goes round.
class ring_place {
 public:
  ring_place() = default;
  ring_place(std::byte* begin, inbox_shape const& inbox) noexcept
      : at_(reinterpret_cast<letter*>(begin)),
        end_(at_ + inbox.letters),
        letters_(static_cast<std::uint32_t>(inbox.letters)),
        stride_bytes_(static_cast<std::uint32_t>(inbox.stride_bytes)) {}

  [[nodiscard]] COLLX_ALWAYS_INLINE letter& operator*() const noexcept { return *at_; }
  [[nodiscard]] COLLX_ALWAYS_INLINE letter* operator->() const noexcept { return at_; }
  // Of the letter here.
  [[nodiscard]] std::byte* enclosure() const noexcept {
    std::uint64_t const index = letters_ - static_cast<std::uint64_t>(end_ - at_);
    return reinterpret_cast<std::byte*>(end_) + inbox_shape::enclosure_place(index) * stride_bytes_;
  }

  COLLX_ALWAYS_INLINE void advance() noexcept {
    if (COLLX_UNLIKELY(++at_ >= end_)) at_ -= letters_;
  }

 private:
  letter* at_ = nullptr;
  letter* end_ = nullptr;
  std::uint32_t letters_ = 0, stride_bytes_ = 0;
};

// One lane between this rank and one peer, both directions. Used by this rank only. What is counted is
// letters.
struct alignas(line_bytes) pair {
  ring_place inbox;                              // of the next letter, in this rank's block
  ring_place outbox;                             // of the next letter, in the peer's block
  doorbell* bell = nullptr;                      // the peer's
  std::uint64_t taken_max = 0, per_receipt = 0;  // as in layout.hpp
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t known_consumed = 0;           // last value read from `returned`
  std::uint64_t acknowledged = 0;             // last value written to `receipts`
  acknowledgement* receipts = nullptr;        // this rank writes: what it has consumed
  acknowledgement const* returned = nullptr;  // the peer writes: what it has consumed of ours
  std::uint64_t in_place_sent = 0;            // number of the last letter that refers to the user's memory
  std::uint64_t staged_sent = 0;              // and of the last that refers to staging
  bool owes_receipt = false;                  // the letter being read has a payload elsewhere
  std::uint64_t push_target = 0;
  std::uint64_t push_collective = 0;
  std::byte* block = nullptr;      // the peer's
  std::size_t push_room = 0;       // bytes at push_target
  std::size_t enclosed_bytes = 0;  // with the letter that was consumed last
};

// A letter says how many of ours its sender had consumed: of those in flight when it was written, so that 32
// bits will do. Those that lie unread keep_near().
inline void learn(pair& with, letter const& from_peer) noexcept {
  auto const more =
      static_cast<std::int32_t>(from_peer.consumed - static_cast<std::uint32_t>(with.known_consumed));
  if (more > 0) with.known_consumed += static_cast<std::uint64_t>(more);
}

// A letter that lay unread while 2^31 of ours were consumed would seem to speak of as many to come. It is
// this rank's until it is consumed, which may so correct it; and whose letters go on being consumed looks
// again and again.
inline void keep_near(pair const& with, letter& from_peer) noexcept {
  auto const known = static_cast<std::uint32_t>(with.known_consumed);
  if (COLLX_UNLIKELY(known - from_peer.consumed >= std::uint32_t{1} << 30)) from_peer.consumed = known;
}

// Kept out of line: it is rare, and what calls it is on the path of every message.
COLLX_NEVER_INLINE inline std::uint64_t look_for_receipt(pair& with) noexcept {
  // Acquire: pairs with consume(); what the receiver read, it read before we overwrite it.
  std::uint64_t const told = with.returned->consumed.load(std::memory_order_acquire);
  if (told > with.known_consumed) with.known_consumed = told;
  // What the peer has said in a letter it does not say again. Behind its last one lie those of the round
  // before, which have other numbers.
  ring_place at = with.inbox;
  // Acquire: as in arrived(); and what the sender had read by then, it read before we overwrite it.
  for (std::uint64_t n = with.received; at->sequence.load(std::memory_order_acquire) == n + 1;) {
    learn(with, *at);
    keep_near(with, *at);
    ++n;
    at.advance();
  }
  return with.known_consumed;
}

// Whether the peer has consumed the first `count` letters. Looks at shared memory only when the last look
// does not answer.
[[nodiscard]] inline bool acknowledged(pair& with, std::uint64_t count) noexcept {
  return COLLX_LIKELY(with.known_consumed >= count) || look_for_receipt(with) >= count;
}

// Whether the peer has consumed all that is not in its own memory.
[[nodiscard]] inline bool read_all(pair& with) noexcept {
  return acknowledged(with, with.staged_sent > with.in_place_sent ? with.staged_sent : with.in_place_sent);
}

// Sends the letter after the last one, of `bytes` bytes of which `here` are in its line.
COLLX_ALWAYS_INLINE void write_letter(pair& to, std::byte const* payload, std::size_t here,
                                      std::size_t bytes) noexcept {
  letter& next = *to.outbox;
  next.bytes = static_cast<std::uint32_t>(bytes);
  next.consumed = static_cast<std::uint32_t>(to.acknowledged = to.received);
  next.payload = 0;
  device::copy_few(next.inlined, payload, here);
  // Release: the line is written before the receiver can see its number.
  next.sequence.store(++to.sent, std::memory_order_release);
  to.outbox.advance();
}

// The same of more than inline_bytes, in lane 0. The letter is written when its enclosure is: one half
// written would be taken away by the receiver, who polls it. The enclosure's lines are taken back from the
// receiver, who read them a round ago, all at a time.
COLLX_NEVER_INLINE inline void write_enclosing(pair& to, std::byte const* payload,
                                               std::size_t bytes) noexcept {
  std::byte* const enclosure = to.outbox.enclosure();
  device::prefetch_exclusive(enclosure, bytes);
  std::memcpy(enclosure, payload, bytes);
  device::demote(enclosure, bytes);
  write_letter(to, payload, 0, bytes);
}

// For who will answer the letter that was consumed last: the lines of the answer, which is likely as long,
// are fetched for writing while the rest of the call, and what the program does before its next one, goes on.
// The peer read them a round ago.
COLLX_ALWAYS_INLINE void prepare_answer(pair& to) noexcept {
  device::prefetch_exclusive(to.outbox->inlined, 1);
  if (COLLX_UNLIKELY(to.enclosed_bytes != 0))
    device::prefetch_exclusive(to.outbox.enclosure(), to.enclosed_bytes);
}

}  // namespace collx::inline abi_1::transport::mapped
