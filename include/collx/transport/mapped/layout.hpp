// SPDX-License-Identifier: Apache-2.0
// The memory that ranks of a mapped transport share: letters, acknowledgements, staging and landing. Only
// mapped/endpoint.hpp reads and writes these fields.
#pragma once

#include <cstddef>
#include <cstring>

#include "collx/core/atomic_word.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1::transport::mapped {

inline constexpr std::size_t line_bytes = 64;
// Independent streams per pair of ranks: lane 0 for blocking calls, the others for started requests.
inline constexpr int lane_count = 4;
inline constexpr std::size_t inline_bytes = 32;
// Letters of blocking calls go on in further lines, which hold so much each: 40 to 256 bytes take 0.6 to 0.8
// of the time that they take by way of staging, where a receiver waits for a letter, and then for what it
// refers to. 512 bytes would take 1.1 to 1.5.
inline constexpr std::size_t further_bytes = 48;
inline constexpr std::size_t further_lines = 5;
inline constexpr std::size_t short_bytes_max = inline_bytes + further_lines * further_bytes;

// An inbox is a ring of lines, in which letters lie one behind the other. Schedules declare how many letters
// they need in flight; the rest pays for acknowledging small letters in batches (an acknowledgement costs
// both sides a cache miss). In lane 0 there is room for 16 of the longest letters and more, as long as those
// of all ranks take some 200 KiB: a root is that far ahead, and ranks that share processors change places
// less often.
[[nodiscard]] constexpr std::uint64_t lines_in(int lane, rank_t size) {
  return lane != 0 ? 16 : size <= 16 ? 192 : size <= 32 ? 96 : 48;
}
// In lines, of an inbox of so many.
[[nodiscard]] constexpr std::uint64_t longest_letter(int lane, std::uint64_t lines) {
  return lane != 0 ? 1 : lines >= 96 ? 1 + further_lines : 3;
}
// Of an inbox of so many lines: those in flight with which one more letter may be sent, however long it is,
[[nodiscard]] constexpr std::uint64_t lines_taken_max(int lane, std::uint64_t lines) {
  return lines - longest_letter(lane, lines);
}
// and those that are consumed before a receipt says so.
[[nodiscard]] constexpr std::uint64_t lines_per_receipt(int lane, std::uint64_t lines) {
  return lines / 2 - (longest_letter(lane, lines) - 1);
}
// Letters of the longest kind that may be in flight before the first is acknowledged: as many lines as make
// no receipt are perhaps read, and taken all the same.
[[nodiscard]] constexpr std::uint64_t depth_of(int lane, std::uint64_t lines) {
  std::uint64_t const unread = lines_taken_max(lane, lines) - (lines_per_receipt(lane, lines) - 1);
  return unread / longest_letter(lane, lines) + 1;
}
// What a schedule may rely on.
inline constexpr std::uint64_t depth = depth_of(1, lines_in(1, 1));
static_assert(depth == 9);
static_assert(depth_of(0, lines_in(0, 16)) >= depth && depth_of(0, lines_in(0, 32)) >= depth &&
              depth_of(0, lines_in(0, 33)) >= depth);

// What is to be combined with other data is fetched piece by piece: as much of each of that many ranks'
// data as stays in a second-level cache together.
inline constexpr std::size_t landing_bytes = 96 * 1024;
inline constexpr rank_t fetched_ranks_max = 32;

// Mark an address as one in private memory, of a letter's sender or its receiver: no address of a program has
// these bits.
inline constexpr std::uint64_t in_sender = std::uint64_t{1} << 63;
inline constexpr std::uint64_t in_receiver = std::uint64_t{1} << 62;

// What a letter takes of a ring, if its payload is in it.
[[nodiscard]] constexpr std::uint64_t lines_for(std::size_t bytes) {
  return bytes <= inline_bytes ? 1 : 1 + (bytes - inline_bytes + further_bytes - 1) / further_bytes;
}
static_assert(lines_for(short_bytes_max) == longest_letter(0, lines_in(0, 2)));

// One message from one rank to another: a single cache line, written by the sender, read by the
// receiver, who owns the memory. Small payloads travel in the line itself.
struct alignas(line_bytes) letter {
  // The number of the line that lies here, counted from 1 per pair and lane; stored last.
  atomic_word<std::uint64_t> sequence;
  std::uint64_t payload;  // shared address, or a mark and an address there; 0: the payload is `inlined`
  std::uint64_t target;   // with a payload: the sender's output, shared or marked in_sender; 0: not reachable
  std::uint32_t bytes;
  std::uint32_t consumed;  // lines of the receiver that the sender has consumed, modulo 2^32
  // Of a payload elsewhere two std::size_t: the bytes at `target`, and those of the block that begins with
  // the payload and is lent whole, or 0.
  std::byte inlined[inline_bytes];

  // What it takes of its ring.
  [[nodiscard]] COLLX_ALWAYS_INLINE std::uint64_t lines() const noexcept {
    return COLLX_LIKELY(bytes <= inline_bytes || payload != 0) ? 1 : lines_for(bytes);
  }

  void say_bytes(std::size_t at_target, std::size_t of_block) noexcept {
    std::size_t const both[] = {at_target, of_block};
    std::memcpy(inlined, both, sizeof both);
  }
  [[nodiscard]] std::size_t lent_block_bytes() const noexcept {
    std::size_t told = 0;
    std::memcpy(&told, inlined + sizeof told, sizeof told);
    return told;
  }
};
static_assert(sizeof(letter) == line_bytes);

// What of a small payload does not fit its letter: the lines behind it. Each tells by itself that it is
// there: all of them travel at once, and none is waited for before the next is written. Its bytes begin where
// those of vectors do: what is put together of them is read again at once, by loads that must not wait for
// two stores.
struct alignas(line_bytes) further_line {
  atomic_word<std::uint64_t> sequence;  // as of a letter
  std::uint64_t unused;
  std::byte inlined[further_bytes];
};
static_assert(sizeof(further_line) == line_bytes);

// Lines that were consumed. Written by the receiver only, after it has read a payload; polled by the sender
// when it runs out of credit. On its own line: it must not share one with letters, which the sender writes.
struct alignas(line_bytes) acknowledgement {
  atomic_word<std::uint64_t> consumed;
};

// How the use of a block ends: every member of the communicator counts itself out of every member's
// block, once. The other fields are its owner's.
struct alignas(line_bytes) farewell {
  atomic_word<std::uint64_t> departed;
  std::uint64_t members;
  std::byte* block;
  std::size_t bytes;
  farewell* next;
};

// Where things lie in the block of shared memory that one rank contributes to one communicator: at most
// 4 MiB for 64 ranks with the settings' default.
//
//   block_bytes = 7 staging_bytes + landing_bytes + m size, and less than two pages
//   m = 15616 up to 16 ranks, 9472 up to 32, then 6400
struct block_layout {
  rank_t size = 1;
  std::size_t staging_bytes = 0;  // what vectors are cut by; a multiple of the page
  rank_t taken_for = 0;           // ranks, of a block that was taken for more than there are; else 0

  [[nodiscard]] constexpr std::size_t inbox(int lane, rank_t sender) const {
    std::size_t const before =
        lane == 0 ? 0 : mail_bytes(0) + static_cast<std::size_t>(lane - 1) * mail_bytes(1);
    return before * static_cast<std::size_t>(size) + static_cast<std::size_t>(sender) * mail_bytes(lane);
  }
  [[nodiscard]] constexpr std::size_t acknowledgement_of(int lane, rank_t sender) const {
    return inbox(lane, sender) + lines(lane) * line_bytes;
  }
  [[nodiscard]] constexpr std::size_t end_of_use() const { return inbox(lane_count, 0); }
  [[nodiscard]] constexpr std::size_t presence() const { return end_of_use() + sizeof(farewell); }
  [[nodiscard]] constexpr std::size_t staging(int lane) const {
    std::size_t const mail = presence() + line_bytes;
    std::size_t const first = (mail + 4095) / 4096 * 4096 + (lane == 0 ? 0 : ring_bytes(0) - ring_bytes(1));
    return first + static_cast<std::size_t>(lane) * (ring_bytes(1) + scratch_bytes());
  }
  // Any lane holds two of the largest fragments. Four in that of blocking calls save 2 to 4 % of what large
  // private vectors take: the last reader may be that much later.
  [[nodiscard]] constexpr std::size_t ring_bytes(int lane) const {
    return lane == 0 ? 2 * staging_bytes : staging_bytes;
  }
  [[nodiscard]] constexpr std::size_t scratch(int lane) const { return staging(lane) + ring_bytes(lane); }
  [[nodiscard]] constexpr std::size_t scratch_bytes() const { return staging_bytes / 2; }
  // Reserved, not used: pages are taken by the system when first touched.
  [[nodiscard]] constexpr std::size_t landing() const { return staging(lane_count); }
  [[nodiscard]] constexpr std::size_t block_bytes() const { return landing() + landing_bytes; }
  // Letters from one rank, and the receipts of letters to it.
  [[nodiscard]] constexpr std::size_t mail_bytes(int lane) const {
    return (lines(lane) + 1) * line_bytes;
  }
  // Of an inbox. Those of all ranks that a block was taken for fit it; for fewer they could be longer.
  [[nodiscard]] constexpr std::uint64_t lines(int lane) const {
    return lines_in(lane, taken_for != 0 ? taken_for : size);
  }
  // The longest payload of a letter of lane 0.
  [[nodiscard]] constexpr std::size_t short_bytes() const {
    return inline_bytes + (longest_letter(0, lines(0)) - 1) * further_bytes;
  }
  // What is given back.
  [[nodiscard]] constexpr std::size_t bytes_taken() const {
    return taken_for != 0 ? block_layout{taken_for, staging_bytes}.block_bytes() : block_bytes();
  }
};

}  // namespace collx::inline abi_1::transport::mapped
