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

// One lane between this rank and one peer, both directions. Used by this rank only.
struct alignas(line_bytes) pair {
  letter* inbox = nullptr;                    // in this rank's block
  letter* outbox = nullptr;                   // in the peer's block
  acknowledgement* receipts = nullptr;        // this rank writes: letters it has consumed
  acknowledgement const* returned = nullptr;  // the peer writes: letters of ours it has consumed
  doorbell* bell = nullptr;                   // the peer's
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t known_consumed = 0;  // last value read from `returned`
  std::uint64_t in_place_sent = 0;   // number of the last letter that refers to the user's memory
  std::uint64_t staged_sent = 0;     // and of the last that refers to staging
  std::uint64_t acknowledged = 0;    // last value written to `receipts`
  bool owes_receipt = false;         // the letter being read has a payload elsewhere
  std::uint64_t push_target = 0;
  std::uint64_t push_collective = 0;
  // Of lane 0: further lines in this rank's block and in the peer's; and the letter being read, put
  // together.
  further_line* further_inbox = nullptr;
  further_line* further_outbox = nullptr;
  std::byte whole[short_bytes];
  std::size_t push_room = 0;  // bytes at push_target
};

// Sends the letter after the last one, of `bytes` bytes of which `here` are in its line.
COLLX_ALWAYS_INLINE void write_letter(pair& to, std::byte const* payload, std::size_t here,
                                      std::size_t bytes) noexcept {
  letter& next = to.outbox[to.sent % letters_per_inbox];
  next.bytes = static_cast<std::uint32_t>(bytes);
  next.consumed = static_cast<std::uint32_t>(to.acknowledged = to.received);
  next.payload = 0;
  device::copy_few(next.inlined, payload, here);
  // Release: the line is written before the receiver can see its number.
  next.sequence.store(++to.sent, std::memory_order_release);
}

// The same of more than inline_bytes, in lane 0. The letter's line is whole before the further ones are
// begun: stores become visible in order, and a line half written while those wait for theirs would be taken
// away by the receiver, who polls it. Theirs are taken back from the receiver, who read them a round ago,
// while it is written.
COLLX_NEVER_INLINE inline void write_lines(pair& to, std::byte const* payload, std::size_t bytes) noexcept {
  further_line* line = to.further_outbox + to.sent % letters_per_inbox * further_lines;
  device::prefetch_exclusive(line->inlined, bytes - inline_bytes);
  write_letter(to, payload, inline_bytes, bytes);
  for (std::size_t at = inline_bytes; at < bytes; at += further_bytes, ++line) {
    device::copy_below_64(line->inlined, payload + at,
                          bytes - at < further_bytes ? bytes - at : further_bytes);
    // Release: as of the letter's line.
    line->sequence.store(to.sent, std::memory_order_release);
    device::demote(line->inlined, 1);
  }
}

// Whether all lines of the letter that is here are, too; if so, they are put together.
[[nodiscard]] COLLX_NEVER_INLINE inline bool further_arrived(pair& with, letter const& next,
                                                             arrival& what) noexcept {
  further_line const* line = with.further_inbox + with.received % letters_per_inbox * further_lines;
  device::copy_below_64(with.whole, next.inlined, inline_bytes);
  for (std::size_t at = inline_bytes; at < what.bytes; at += further_bytes, ++line) {
    // Acquire: pairs with the release in write_lines().
    if (line->sequence.load(std::memory_order_acquire) != with.received + 1) return false;
    device::copy_below_64(with.whole + at, line->inlined, further_bytes);
  }
  what.data = with.whole;
  return true;
}

}  // namespace collx::inline abi_1::transport::mapped
