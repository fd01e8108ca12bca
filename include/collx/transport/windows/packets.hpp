// SPDX-License-Identifier: Apache-2.0
// Small payloads as packets: each few bytes are stored together with what 32 bits say of the message's
// number, so that neither a letter nor a fence is needed, and the receiver looks once. Two widths, of one
// layout in memory each:
//
//   8 bytes    4 of payload and the number. (NCCL calls this LL.)
//   16 bytes   12 of payload and the number: two thirds of the traffic and a third of the stores. The GPU
//              stores and loads all 16 at once; a host does not, and stores the half with the number last.
//
// In front of them, in the same slot and stored beside them, are two words, with the number and the length,
// and with the number and that of the call, so that ranks which were called with different counts, or not in
// the same calls, hear of it.
//
// Messages have numbers of 64 bits, from 0, of which a slot's only grow; what it holds is not overwritten
// before it is consumed.
#pragma once

#include "collx/core/status.hpp"
#include "collx/device/patience.hpp"
#include "collx/device/team.hpp"
#include "collx/transport/windows/layout.hpp"

namespace collx::inline abi_1::transport::windows {

// What lies where in a packet of so many words of four bytes, of which the last one is the number.
template <int Words>
struct packets;

template <>
struct packets<2> {
  static constexpr std::size_t payload_words = 1;

  static COLLX_HD void store(std::byte* to, std::uint32_t const (&payload)[1],
                             std::uint32_t number) noexcept {
    // Relaxed: payload and number are one word.
    device::store_relaxed(reinterpret_cast<std::uint64_t*>(to),
                          static_cast<std::uint64_t>(number) << 32 | payload[0]);
  }
  // Whether the packet of that number is here.
  [[nodiscard]] static COLLX_HD bool load(std::byte const* from, std::uint32_t (&payload)[1],
                                          std::uint32_t number) noexcept {
    // Relaxed: as said above.
    std::uint64_t const word = device::load_relaxed(reinterpret_cast<std::uint64_t const*>(from));
    payload[0] = static_cast<std::uint32_t>(word);
    return static_cast<std::uint32_t>(word >> 32) == number;
  }
};

template <>
struct packets<4> {
  static constexpr std::size_t payload_words = 3;

  static COLLX_HD void store(std::byte* to, std::uint32_t const (&payload)[3],
                             std::uint32_t number) noexcept {
    device::store_pair(reinterpret_cast<std::uint64_t*>(to),
                       {static_cast<std::uint64_t>(payload[1]) << 32 | payload[0],
                        static_cast<std::uint64_t>(number) << 32 | payload[2]});
  }
  [[nodiscard]] static COLLX_HD bool load(std::byte const* from, std::uint32_t (&payload)[3],
                                          std::uint32_t number) noexcept {
    device::word_pair const words = device::load_pair(reinterpret_cast<std::uint64_t const*>(from));
    payload[0] = static_cast<std::uint32_t>(words.first);
    payload[1] = static_cast<std::uint32_t>(words.first >> 32);
    payload[2] = static_cast<std::uint32_t>(words.second);
    return static_cast<std::uint32_t>(words.second >> 32) == number;
  }
};

// The words in front, and where packets begin behind them: at a whole packet.
inline constexpr std::size_t packets_begin = 16;

// Number and length are one word: the length takes as many bits as the longest one has, and the number the
// other 43. A word is looked at whenever a letter is waited for, also where no packets have come for long, so
// it must not be that of an old message: with 32 bits of the number one would come again within hours.
inline constexpr int length_bits = 21;
static_assert(packet_bytes_max >> length_bits == 0);

// Of a call's number, what fits beside that of the message. Who is that many calls behind is not told.
inline constexpr std::uint64_t call_mask = (std::uint64_t{1} << length_bits) - 1;

COLLX_HD_INLINE void store_head(std::byte* slot, std::uint64_t message, std::size_t bytes,
                                std::uint64_t call) noexcept {
  auto* const words = reinterpret_cast<std::uint64_t*>(slot);
  // Relaxed: each of the words has the number, so that neither need come first.
  device::store_relaxed(words, (message + 1) << length_bits | bytes);
  device::store_relaxed(words + 1, (message + 1) << length_bits | (call & call_mask));
}
// Whether the length of that message is here.
[[nodiscard]] COLLX_HD_INLINE bool load_length(std::byte const* slot, std::uint64_t message,
                                               std::size_t& bytes) noexcept {
  // Relaxed: as said above.
  std::uint64_t const word = device::load_relaxed(reinterpret_cast<std::uint64_t const*>(slot));
  std::uint64_t const length = word & ((std::uint64_t{1} << length_bits) - 1);
  // No message of packets is empty: that is memory where nothing has been stored yet.
  if (length == 0 || word - length != (message + 1) << length_bits) return false;
  bytes = length;
  return true;
}

// Whether the number of its call is here; after load_length, which tells memory where nothing was stored.
// `ahead`: how far it is ahead of `call`.
[[nodiscard]] COLLX_HD_INLINE bool load_call(std::byte const* slot, std::uint64_t message, std::uint64_t call,
                                             std::int64_t& ahead) noexcept {
  // Relaxed: as said above.
  std::uint64_t const word = device::load_relaxed(reinterpret_cast<std::uint64_t const*>(slot) + 1);
  if (word >> length_bits != ((message + 1) << length_bits) >> length_bits) return false;
  auto const apart = static_cast<std::int64_t>((word - call) & call_mask);
  // The shorter way round.
  ahead = apart <= static_cast<std::int64_t>(call_mask / 2)
              ? apart
              : apart - static_cast<std::int64_t>(call_mask) - 1;
  return true;
}

// What the packets of a message carry of its number. Never 0, which is in memory where none have been. It
// comes again, but 2^32 - 1 is odd: in the same slot only after 2^35 messages. A packet of that message would
// be taken for a new one if all packets there since have been of shorter messages, and the new one is not
// there yet.
[[nodiscard]] COLLX_HD constexpr std::uint32_t packet_number(std::uint64_t message) noexcept {
  return static_cast<std::uint32_t>(message % 0xffff'ffffu) + 1;
}
static_assert(depth == 8);  // as said above

// The thread that sees to the length: the one with the fewest packets.
template <device::team Team>
[[nodiscard]] COLLX_HD bool sees_to_length(Team const& team) noexcept {
  return team.rank() == team.size() - 1;
}

// Stores a payload of any alignment, by all threads of the team. `bytes`: 1 to packet_bytes_max.
template <int Words, device::team Team>
COLLX_HD_INLINE void send_packets(Team const& team, std::byte* slot, std::uint64_t message,
                                  std::uint64_t call, std::byte const* payload, std::size_t bytes) noexcept {
  if (sees_to_length(team)) store_head(slot, message, bytes, call);
  std::uint32_t const number = packet_number(message);
  std::byte* const to = slot + packets_begin;
  constexpr std::uint32_t each = packets<Words>::payload_words, each_bytes = each * sizeof(std::uint32_t);
  // A GPU's numbers have 32 bits, and lengths as many at most.
  auto const length = static_cast<std::uint32_t>(bytes), threads = static_cast<std::uint32_t>(team.size());
  bool const whole_words = reinterpret_cast<std::uintptr_t>(payload) % sizeof(std::uint32_t) == 0;
  COLLX_NO_UNROLL
  for (auto i = static_cast<std::uint32_t>(team.rank()); i * each_bytes < length; i += threads) {
    std::uint32_t const at = i * each_bytes;
    std::uint32_t data[each] = {};
    COLLX_UNROLL
    for (std::uint32_t w = 0; w < each; ++w) {
      std::uint32_t const begin = at + 4 * w;
      if (whole_words && begin + 4 <= length) {
        data[w] = *reinterpret_cast<std::uint32_t const*>(payload + begin);
      } else {
        COLLX_NO_UNROLL
        for (std::uint32_t b = 0; b < 4 && begin + b < length; ++b)
          data[w] |= static_cast<std::uint32_t>(payload[begin + b]) << (8 * b);
      }
    }
    packets<Words>::store(to + i * Words * sizeof(std::uint32_t), data, number);
  }
}

// Packets that a thread looks for at a time.
inline constexpr std::uint32_t packets_at_once = 4;

// Puts a payload together, in whole words. Each thread waits for its own packets and returns ok, or why it
// stopped waiting: one of them mismatch, where the message has another length, which is `came` then, or is of
// another call. So it is where `came_otherwise(came)` says that the message is here, but not as packets.
template <int Words, device::team Team, class CameOtherwise>
[[nodiscard]] COLLX_HD_INLINE status take_packets(Team const& team, device::patience const& limits,
                                                  std::byte const* slot, std::uint64_t message,
                                                  std::uint64_t call, std::uint32_t* to, std::size_t bytes,
                                                  CameOtherwise const& came_otherwise,
                                                  std::size_t& came) noexcept {
  // First: of packets beyond the length it would wait in vain.
  if (sees_to_length(team)) {
    std::int64_t ahead = 0;
    auto const is_here = [&]() noexcept {
      bool const has_length = load_length(slot, message, came),
                 has_call = load_call(slot, message, call, ahead);
      return has_length && has_call;  // written so that neither load waits for the other
    };
    auto const has_strayed = [&]() noexcept { return came_otherwise(came); };
    if (status const outcome = device::wait_until(limits, is_here, has_strayed); outcome != status::ok)
      return outcome;
    if (came != bytes || ahead != 0) return status::mismatch;
  }
  std::byte const* const from = slot + packets_begin;
  std::uint32_t const number = packet_number(message);
  constexpr std::uint32_t each = packets<Words>::payload_words, each_bytes = each * sizeof(std::uint32_t);
  auto const length = static_cast<std::uint32_t>(bytes), stride = static_cast<std::uint32_t>(team.size());
  std::uint32_t const words = (length + 3) / 4, count = (length + each_bytes - 1) / each_bytes;
  // Several at a time, or each look would wait for the one before it.
  COLLX_NO_UNROLL
  for (auto first = static_cast<std::uint32_t>(team.rank()); first < count;
       first += packets_at_once * stride) {
    std::uint32_t data[packets_at_once][each] = {};
    auto const is_here = [&]() noexcept {
      bool all = true;
      COLLX_UNROLL
      for (std::uint32_t p = 0; p < packets_at_once; ++p) {
        std::uint32_t const i = first + p * stride;
        if (i < count)
          all = packets<Words>::load(from + i * Words * sizeof(std::uint32_t), data[p], number) && all;
      }
      return all;
    };
    if (status const outcome = device::wait_until(limits, is_here); outcome != status::ok) return outcome;
    COLLX_UNROLL
    for (std::uint32_t p = 0; p < packets_at_once; ++p) {
      std::uint32_t const i = first + p * stride;
      if (i >= count) break;
      COLLX_UNROLL
      for (std::uint32_t w = 0; w < each; ++w)
        if (i * each + w < words) to[i * each + w] = data[p][w];
    }
  }
  return status::ok;
}

}  // namespace collx::inline abi_1::transport::windows
