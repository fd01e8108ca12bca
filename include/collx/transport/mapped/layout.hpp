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

// Letters that one rank has room for from one other on one lane, in a ring. Schedules declare how many they
// need in flight; the rest pays for acknowledging small letters in batches (an acknowledgement costs both
// sides a cache miss). In lane 0, of blocking calls, there are more where ranks are few: a root is that far
// ahead, and ranks that share processors change places less often. There, a payload that does not fit its
// letter's line lies in the letter's enclosure, which costs what staging does, less the receipt of each: 64
// to 512 bytes take 0.6 to 0.9 of the time, and 1 KiB up to 1.5 times as long (docs/decisions.md).
struct inbox_shape {
  std::uint64_t letters;
  std::size_t enclosed_bytes_max;
  std::size_t stride_bytes;  // of enclosures

  // In flight, with which one more may be sent,
  [[nodiscard]] constexpr std::uint64_t taken_max() const { return letters - 1; }
  // and consumed, before a receipt says so.
  [[nodiscard]] constexpr std::uint64_t per_receipt() const { return letters / 2; }
  // In flight before the first is acknowledged: as many as make no receipt are perhaps read, and taken all
  // the same.
  [[nodiscard]] constexpr std::uint64_t depth() const { return taken_max() - (per_receipt() - 1) + 1; }
  [[nodiscard]] constexpr std::size_t bytes() const { return letters * (line_bytes + stride_bytes); }
  // Where the enclosure of a letter begins, behind all letters. Whoever reads one makes its processor fetch
  // lines behind it too: those of the next letter's would be taken from its writer, which costs 1.1 to 1.6
  // times the time. So there are 13 lines between them, or where that takes too much memory, one lies five
  // places ahead or three back.
  [[nodiscard]] constexpr std::size_t enclosure(std::uint64_t index) const {
    return enclosure_place(index) * stride_bytes;
  }
  [[nodiscard]] static constexpr std::uint64_t enclosure_place(std::uint64_t index) {
    return index / 8 * 8 + index * 5 % 8;
  }
};

// As large as a block of 4 MiB for 64 ranks allows (see block_layout).
[[nodiscard]] constexpr inbox_shape inbox_for(int lane, rank_t size) {
  if (lane != 0) return {16, 0, 0};
  if (size <= 2) return {144, 512, 512 + 13 * line_bytes};
  if (size <= 4) return {176, 512, 512};
  if (size <= 8) return {144, 256, 256};
  if (size <= 16) return {72, 256, 256};
  if (size <= 32) return {48, 128, 128};
  return {24, 64, 64};
}
// What a schedule may rely on.
inline constexpr std::uint64_t depth = inbox_for(1, 1).depth();
static_assert(depth == 9);
static_assert(inbox_for(0, 33).depth() >= depth && inbox_for(0, 33).letters % 8 == 0);

// What is to be combined with other data is fetched piece by piece: as much of each of that many ranks'
// data as stays in a second-level cache together.
inline constexpr std::size_t landing_bytes = 96 * 1024;
inline constexpr rank_t fetched_ranks_max = 32;

// Mark an address as one in private memory, of a letter's sender or its receiver: no address of a program has
// these bits.
inline constexpr std::uint64_t in_sender = std::uint64_t{1} << 63;
inline constexpr std::uint64_t in_receiver = std::uint64_t{1} << 62;

// One message from one rank to another: a single cache line, written by the sender, read by the
// receiver, who owns the memory. Small payloads travel in the line itself, larger ones of lane 0 in its
// enclosure.
struct alignas(line_bytes) letter {
  // The number of the letter that lies here, counted from 1 per pair and lane; stored last.
  atomic_word<std::uint64_t> sequence;
  std::uint64_t payload;  // shared address, or a mark and an address there; 0: `inlined` or enclosed
  std::uint64_t target;   // with a payload: the sender's output, shared or marked in_sender; 0: not reachable
  std::uint32_t bytes;
  std::uint32_t consumed;  // letters of the receiver that the sender has consumed, modulo 2^32
  // Of a payload elsewhere two std::size_t: the bytes at `target`, and those of the block that begins with
  // the payload and is lent whole, or 0.
  std::byte inlined[inline_bytes];

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

// Letters that were consumed. Written by the receiver only, after it has read a payload; polled by the sender
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
//   block_bytes = 7 staging_bytes + landing_bytes + m size, and less than two pages; where 1 KiB for each
//   rank is more than half of staging, instead of 2 of the staging_bytes 4 KiB size
//   m = 206080 up to 2 ranks, 104704 up to 4, 49408 up to 8, 26368 up to 16, 12544 up to 32, then 6400
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
    return inbox(lane, sender) + inbox_of(lane).bytes();
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
  // Half of staging, as schedules rely on; and a place for each rank: what is no longer than that goes in one
  // letter.
  [[nodiscard]] constexpr std::size_t scratch_bytes() const {
    std::size_t const of_places = static_cast<std::size_t>(size) * place_bytes_min;
    return staging_bytes / 2 > of_places ? staging_bytes / 2 : of_places;
  }
  static constexpr std::size_t place_bytes_min = 1024;
  // In 32 bits, which divide in half the time of 64.
  [[nodiscard]] constexpr std::size_t apart_bytes() const {
    std::uint32_t const lines = static_cast<std::uint32_t>(scratch_bytes() / line_bytes) /
                                static_cast<std::uint32_t>(size);
    return lines * line_bytes;
  }
  [[nodiscard]] constexpr std::size_t apart(int lane, rank_t peer) const {
    return scratch(lane) + static_cast<std::size_t>(peer) * apart_bytes();
  }
  // Reserved, not used: pages are taken by the system when first touched.
  [[nodiscard]] constexpr std::size_t landing() const { return staging(lane_count); }
  [[nodiscard]] constexpr std::size_t block_bytes() const { return landing() + landing_bytes; }
  // Letters from one rank, and the receipts of letters to it.
  [[nodiscard]] constexpr std::size_t mail_bytes(int lane) const {
    return inbox_of(lane).bytes() + line_bytes;
  }
  // Those of all ranks that a block was taken for fit it; for fewer they could be larger.
  [[nodiscard]] constexpr inbox_shape inbox_of(int lane) const {
    return inbox_for(lane, taken_for != 0 ? taken_for : size);
  }
  // What is given back.
  [[nodiscard]] constexpr std::size_t bytes_taken() const {
    return taken_for != 0 ? block_layout{taken_for, staging_bytes}.block_bytes() : block_bytes();
  }
};

}  // namespace collx::inline abi_1::transport::mapped
