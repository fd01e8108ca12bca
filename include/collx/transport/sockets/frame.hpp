// SPDX-License-Identifier: Apache-2.0
// What travels between two ranks over a connection: frames, each a head of fixed size and, for data, a slice
// of a message. Whoever decodes a head believes nothing in it: what it says is compared with what the
// receiver knows before a byte is stored (channel_group.hpp).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collx/core/types.hpp"

namespace collx::inline abi_1::transport::sockets {

enum class frame_kind : std::uint8_t {
  data = 1,  // a slice follows
  credit,    // `consumed` of the receiver's messages on this channel have been read
  alarm,     // somebody failed: code in `message`, reporter in `offset`, culprit in `consumed`
  goodbye,   // the sender has done all it will do on this connection; ends every one of them
  lost,      // the process of rank `from` of the world is gone without a goodbye
  question,  // whom do you wait for?
  answer,    // for rank `from` of the world, or nobody
};

inline constexpr std::size_t frame_bytes = 48;

struct frame {
  static constexpr std::uint8_t ends_message = 1;  // flags
  static constexpr std::uint8_t is_checked = 2;    // `checksum` is that of head and slice, if it has one

  frame_kind kind = frame_kind::data;
  std::uint8_t lane = 0;
  std::uint8_t flags = 0;
  std::uint32_t sequence = 0;       // of the slice in its channel, 24 bits
  std::uint64_t communicator = 0;
  std::uint32_t from = 0;           // the sender's rank there
  std::uint32_t message = 0;        // its number in its channel, modulo 2^32
  std::uint32_t message_bytes = 0;
  std::uint32_t offset = 0;         // of the slice in its message
  std::uint32_t slice_bytes = 0;
  std::uint32_t consumed = 0;       // modulo 2^32
  std::uint32_t checksum = 0;
};

namespace detail {

inline constexpr std::uint16_t frame_magic = 0x7863;  // "cx"

// Little endian, whatever the machine. Inlined, and by memcpy where that is its own order: compilers make no
// single load or store of a loop over bytes that may be those of the pointer.
template <class Word>
COLLX_ALWAYS_INLINE void put(std::byte*& to, Word value, std::size_t bytes = sizeof(Word)) noexcept {
  if constexpr (std::endian::native == std::endian::little) std::memcpy(to, &value, bytes);
  else
    for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
  to += bytes;
}

template <class Word>
COLLX_ALWAYS_INLINE void get(std::byte const*& from, Word& value,
                             std::size_t bytes = sizeof(Word)) noexcept {
  std::uint64_t read = 0;
  if constexpr (std::endian::native == std::endian::little) std::memcpy(&read, from, bytes);
  else
    for (std::size_t i = 0; i < bytes; ++i) read |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
  value = static_cast<Word>(read);
  from += bytes;
}

// Calls f(field, bytes) for all behind the kind, in the order in which they travel.
template <class Frame, class F>
COLLX_ALWAYS_INLINE void for_each_field(Frame& what, F const& f) noexcept {
  f(what.lane, 1);
  f(what.flags, 1);
  f(what.sequence, 3);
  f(what.communicator, 8);
  f(what.from, 4);
  f(what.message, 4);
  f(what.message_bytes, 4);
  f(what.offset, 4);
  f(what.slice_bytes, 4);
  f(what.consumed, 4);
  f(what.checksum, 4);
}

}  // namespace detail

inline void encode(frame const& what, std::byte* to) noexcept {
  using detail::put, detail::for_each_field;
  std::byte* const begin = to;
  put(to, detail::frame_magic);
  put(to, static_cast<std::uint8_t>(what.kind));
  for_each_field(what, [&](auto field, std::size_t bytes) noexcept { put(to, field, bytes); });
  std::memset(to, 0, frame_bytes - static_cast<std::size_t>(to - begin));
}

// False: this is no frame of ours.
[[nodiscard]] inline bool decode(std::byte const* from, frame& what) noexcept {
  using detail::get, detail::for_each_field;
  std::byte const* const begin = from;
  std::uint16_t magic = 0;
  std::uint8_t kind = 0;
  get(from, magic);
  get(from, kind);
  for_each_field(what, [&](auto& field, std::size_t bytes) noexcept { get(from, field, bytes); });
  for (; from != begin + frame_bytes; ++from)
    if (*from != std::byte{0}) return false;
  if (magic != detail::frame_magic || kind < 1 || kind > static_cast<std::uint8_t>(frame_kind::answer))
    return false;
  what.kind = static_cast<frame_kind>(kind);
  bool const is_data = what.kind == frame_kind::data;
  if ((what.flags & ~(frame::ends_message | frame::is_checked)) != 0) return false;
  if (!is_data) return what.slice_bytes == 0 && (what.flags & frame::ends_message) == 0;
  // Written so that no sum can overflow.
  return what.slice_bytes <= what.message_bytes && what.offset <= what.message_bytes - what.slice_bytes;
}

}  // namespace collx::inline abi_1::transport::sockets
