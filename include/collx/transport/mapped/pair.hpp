// SPDX-License-Identifier: Apache-2.0
// What a mapped endpoint knows of one peer on one lane, and the further lines of letters between them.
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
  ring_place(std::byte* begin, std::uint64_t lines) noexcept
      : at_(reinterpret_cast<letter*>(begin)), end_(at_ + lines), lines_(lines) {}

  [[nodiscard]] COLLX_ALWAYS_INLINE letter& operator*() const noexcept { return *at_; }
  [[nodiscard]] COLLX_ALWAYS_INLINE letter* operator->() const noexcept { return at_; }
  [[nodiscard]] further_line& further() const noexcept { return *reinterpret_cast<further_line*>(at_); }

  COLLX_ALWAYS_INLINE void advance(std::uint64_t lines = 1) noexcept {
    at_ += lines;
    if (COLLX_UNLIKELY(at_ >= end_)) at_ -= lines_;
  }

 private:
  letter* at_ = nullptr;
  letter* end_ = nullptr;
  std::uint64_t lines_ = 0;
};

// Where a payload lies while a letter refers to it, or is put together; read as elements.
template <std::size_t Bytes>
struct alignas(line_bytes) letter_payload {
  std::byte bytes[Bytes];
};

// One lane between this rank and one peer, both directions. Used by this rank only. What is counted is lines.
struct alignas(line_bytes) pair {
  ring_place inbox;          // of the next letter, in this rank's block
  ring_place outbox;         // of the next letter, in the peer's block
  doorbell* bell = nullptr;  // the peer's
  std::uint64_t lines_taken_max = 0, lines_per_receipt = 0;  // as in layout.hpp
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
  std::byte* block = nullptr;  // the peer's
  std::size_t push_room = 0;   // bytes at push_target
  std::byte* whole = nullptr;  // of lane 0: the letter being read, put together; short_bytes_max
};

// A letter says how many lines of ours its sender had consumed: of those in flight, so that 32 bits will do.
inline void learn(pair& with, letter const& from_peer) noexcept {
  auto const more =
      static_cast<std::int32_t>(from_peer.consumed - static_cast<std::uint32_t>(with.known_consumed));
  if (more > 0) with.known_consumed += static_cast<std::uint64_t>(more);
}

// Kept out of line: it is rare, and what calls it is on the path of every message.
COLLX_NEVER_INLINE inline std::uint64_t look_for_receipt(pair& with) noexcept {
  // Acquire: pairs with consume(); what the receiver read, it read before we overwrite it.
  std::uint64_t const told = with.returned->consumed.load(std::memory_order_acquire);
  if (told > with.known_consumed) with.known_consumed = told;
  // What the peer has said in a letter it does not say again. Behind its last one lie lines of the round
  // before, which have other numbers.
  ring_place at = with.inbox;
  // Acquire: as in arrived(); and what the sender had read by then, it read before we overwrite it.
  for (std::uint64_t n = with.received; at->sequence.load(std::memory_order_acquire) == n + 1;) {
    learn(with, *at);
    std::uint64_t const lines = at->lines();
    n += lines;
    at.advance(lines);
  }
  return with.known_consumed;
}

// Whether the peer has consumed the first `count` lines. Looks at shared memory only when the last look does
// not answer.
[[nodiscard]] inline bool acknowledged(pair& with, std::uint64_t count) noexcept {
  return COLLX_LIKELY(with.known_consumed >= count) || look_for_receipt(with) >= count;
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

// The same of more than inline_bytes, in lane 0. The letter's line is whole before the further ones are
// begun: stores become visible in order, and a line half written while those wait for theirs would be taken
// away by the receiver, who polls it. Theirs are taken back from the receiver, who read them a round ago,
// while it is written.
COLLX_NEVER_INLINE inline void write_lines(pair& to, std::byte const* payload, std::size_t bytes) noexcept {
  ring_place further = to.outbox;
  for (std::uint64_t i = lines_for(bytes); i > 1; --i) {
    further.advance();
    device::prefetch_exclusive(further.further().inlined, 1);
  }
  write_letter(to, payload, inline_bytes, bytes);
  for (std::size_t at = inline_bytes; at < bytes; at += further_bytes) {
    further_line& line = to.outbox.further();
    if (bytes - at >= further_bytes) std::memcpy(line.inlined, payload + at, further_bytes);
    else device::copy_below_64(line.inlined, payload + at, bytes - at);
    // Release: as of the letter's line.
    line.sequence.store(++to.sent, std::memory_order_release);
    device::demote(line.inlined, 1);
    to.outbox.advance();
  }
}

// How often a further line is looked for in turn: it comes right behind the one before it, and so sooner than
// who asks for the letter again, after a pause.
inline constexpr int looks_for_further = 16;

// Whether all lines of the letter that is here are, too; if so, they are put together.
[[nodiscard]] COLLX_NEVER_INLINE inline bool further_arrived(pair& with, arrival& what) noexcept {
  ring_place line = with.inbox;
  std::memcpy(with.whole, line->inlined, inline_bytes);
  std::uint64_t number = with.received + 1;
  for (std::size_t at = inline_bytes; at < what.bytes; at += further_bytes) {
    line.advance();
    // Acquire: pairs with the release in write_lines().
    ++number;
    for (int looks = looks_for_further; line.further().sequence.load(std::memory_order_acquire) != number;)
      if (--looks == 0) return false;
    std::memcpy(with.whole + at, line.further().inlined, further_bytes);
  }
  what.data = with.whole;
  return true;
}

}  // namespace collx::inline abi_1::transport::mapped
