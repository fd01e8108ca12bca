// SPDX-License-Identifier: Apache-2.0
// A window: the memory of one rank of a GPU (or of a test) that its peers map, and what lies where in it.
// Plain words, zeroed when it is made; the same layout on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collx/core/types.hpp"

namespace collx::inline abi_1::transport::windows {

// Messages from one peer on one lane that may be under way. The deepest schedules of the library declare 4.
inline constexpr int depth = 8;

// In the sender's window; in the memory that its peers reach besides; or already where the receiver wants it,
// to whom the address then belongs.
enum class letter_place : std::uint64_t { window, heap, receiver };

// Where a payload lies: an address in the memory of its sender, which knows which mapping the receiver
// must go by. One line: what is asked for together comes together.
struct alignas(64) letter {
  std::uint64_t sequence;  // the message's number, from 1; written last
  std::uint64_t address;
  std::uint64_t bytes;
  letter_place where;
  std::uint64_t output;        // the address of the sender's output, if its peers may store there; else 0
  std::uint64_t output_bytes;  // how long that is
  std::uint32_t call;          // of which call, on lane 0
};

// What a peer writes into this rank's window, on one lane.
struct alignas(128) channel {
  letter letters[depth];
  std::uint64_t consumed;  // how many of this rank's messages the peer has read
};

// What this rank keeps for itself of a peer, on one lane. One thread uses it at a time, and the team syncs
// before another one does.
struct book {
  std::uint64_t sent, taken;
  std::uint64_t read;             // of what was sent, as far as was looked at last
  std::uint64_t staged_until[2];  // sent, when either half of the staging memory was last left
};

// Both sides of what this rank knows of a lane.
struct alignas(64) lane_state {
  std::uint32_t fragments;  // of all calls so far
  // Calls of this group so far, those that moved nothing included. Of lane 0, which is a part of every call.
  // Of both numbers only differences matter, so that they may come to 0 again.
  std::uint32_t calls;
};

struct alignas(128) head {
  std::uint32_t stopped;  // 1 + the rank that said so first, as far as this one knows
  std::uint32_t reported;
};

// Of the largest payload that may travel as packets.
inline constexpr std::size_t packet_bytes_max = std::size_t{1} << 20;

// Bytes of a packet (packets.hpp).
enum class packet_width : int { narrow = 8, wide = 16 };

// Sizes are multiples of 128. Offsets are in bytes from where a window begins.
class layout {
 public:
  layout() = default;
  // `staging_bytes`: of one lane. `packet_bytes`: the largest payload that travels as packets, on lane 0,
  // at most packet_bytes_max; 0: none do.
  COLLX_HD constexpr layout(rank_t size, int lanes, std::size_t staging_bytes, std::size_t packet_bytes,
                            packet_width width = packet_width::narrow)
      : size_(size),
        lanes_(lanes),
        width_(width),
        staging_bytes_(rounded(staging_bytes)),
        packet_bytes_(rounded(packet_bytes)),
        channels_(sizeof(head) + rounded(number(lanes) * sizeof(lane_state))),
        books_(channels_ + number(lanes) * number(size) * sizeof(channel)),
        packets_(books_ + rounded(number(lanes) * number(size) * sizeof(book))),
        landings_(packets_ + number(size) * depth * packet_room()),
        staging_(landings_ + number(size) * packet_bytes_) {}

  [[nodiscard]] COLLX_HD constexpr int lanes() const noexcept { return lanes_; }
  [[nodiscard]] COLLX_HD constexpr std::size_t staging_bytes() const noexcept { return staging_bytes_; }
  [[nodiscard]] COLLX_HD constexpr std::size_t packet_bytes() const noexcept { return packet_bytes_; }

  [[nodiscard]] COLLX_HD constexpr packet_width width() const noexcept { return width_; }

  [[nodiscard]] COLLX_HD constexpr std::size_t state(int lane) const noexcept {
    return sizeof(head) + number(lane) * sizeof(lane_state);
  }
  // Written by the peer.
  [[nodiscard]] COLLX_HD constexpr std::size_t from(int lane, rank_t peer) const noexcept {
    return channels_ + pair(lane, peer) * sizeof(channel);
  }
  [[nodiscard]] COLLX_HD constexpr std::size_t of(int lane, rank_t peer) const noexcept {
    return books_ + pair(lane, peer) * sizeof(book);
  }
  // Of the peer's message with that number (from 0), on lane 0.
  [[nodiscard]] COLLX_HD constexpr std::size_t packets(rank_t peer, std::uint64_t message) const noexcept {
    return packets_ + (number(peer) * depth + message % depth) * packet_room();
  }
  // Where the payload of the k-th of a step's packet messages is put together.
  [[nodiscard]] COLLX_HD constexpr std::size_t landing(int k) const noexcept {
    return landings_ + number(k) * packet_bytes_;
  }
  [[nodiscard]] COLLX_HD constexpr std::size_t staging(int lane, int half) const noexcept {
    return staging_ + number(lane) * (staging_bytes_ + half_bytes()) + number(half) * half_bytes();
  }
  [[nodiscard]] COLLX_HD constexpr std::size_t scratch(int lane) const noexcept { return staging(lane, 2); }
  [[nodiscard]] COLLX_HD constexpr std::size_t half_bytes() const noexcept { return staging_bytes_ / 2; }
  // Of a whole window; what lies behind it is aligned to 256 bytes, as the window is.
  [[nodiscard]] COLLX_HD constexpr std::size_t bytes() const noexcept { return rounded(staging(lanes_, 0)); }

  // Two may be of as many bytes and place different things there.
  [[nodiscard]] constexpr bool is_like(layout const& other) const noexcept {
    return size_ == other.size_ && lanes_ == other.lanes_ && width_ == other.width_ &&
           staging_bytes_ == other.staging_bytes_ && packet_bytes_ == other.packet_bytes_;
  }

 private:
  [[nodiscard]] static COLLX_HD constexpr std::size_t number(std::int64_t value) {
    return static_cast<std::size_t>(value);
  }
  [[nodiscard]] static COLLX_HD constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + 255) / 256 * 256;
  }
  [[nodiscard]] COLLX_HD constexpr std::size_t pair(int lane, rank_t peer) const {
    return number(lane) * number(size_) + number(peer);
  }
  [[nodiscard]] COLLX_HD constexpr std::size_t packet_room() const {
    // Narrow ones are half payload, wide ones more; and a line for what is in front of them.
    return packet_bytes_ == 0 ? 0 : packet_bytes_ * 2 + 128;
  }

  rank_t size_ = 1;
  int lanes_ = 1;
  packet_width width_ = packet_width::narrow;
  std::size_t staging_bytes_ = 0, packet_bytes_ = 0;
  // Where what all lanes have begins: found out once, and not by threads of a GPU.
  std::size_t channels_ = 0, books_ = 0, packets_ = 0, landings_ = 0, staging_ = 0;
};

// As allocate() of a gpu_communicator promises.
static_assert(layout(3, 16, 4096, 256).bytes() % 256 == 0);

}  // namespace collx::inline abi_1::transport::windows
