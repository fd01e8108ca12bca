// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli) of a frame, head and slice: what TCP's sixteen bits miss, a faulty card or switch
// between them, this finds. With the processor's own instruction where it has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collx/transport/sockets/frame.hpp"

namespace collx::inline abi_1::transport::sockets {

namespace detail {

struct crc_table {
  std::uint32_t of[256];
  constexpr crc_table() : of{} {
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? 0x82f63b78u : 0);
      of[i] = value;
    }
  }
};
inline constexpr crc_table crc_bytes{};

[[nodiscard]] inline std::uint32_t crc32c_anywhere(std::uint32_t crc, std::byte const* from,
                                                   std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; ++i)
    crc = crc >> 8 ^ crc_bytes.of[(crc ^ std::to_integer<std::uint32_t>(from[i])) & 0xff];
  return crc;
}

#if defined(__x86_64__)
[[nodiscard]] __attribute__((target("sse4.2"))) inline std::uint32_t crc32c_sse42(
    std::uint32_t crc, std::byte const* from, std::size_t bytes) noexcept {
  std::uint64_t wide = crc;
  for (; bytes >= 8; bytes -= 8, from += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  return crc32c_anywhere(static_cast<std::uint32_t>(wide), from, bytes);
}
#endif

}  // namespace detail

// `before`: of what stands in front of these bytes, if they go on with something.
[[nodiscard]] inline std::uint32_t crc32c(std::byte const* from, std::size_t bytes,
                                          std::uint32_t before = 0) noexcept {
  std::uint32_t const begin = ~before;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~detail::crc32c_sse42(begin, from, bytes);
#endif
  return ~detail::crc32c_anywhere(begin, from, bytes);
}

// What a frame carries, or should: of its head as it travels, with a zero for the checksum itself, and of the
// slice, if it has one. Without the head, a sound slice could go to a wrong place.
[[nodiscard]] inline std::uint32_t checksum_of(frame head, std::byte const* slice) noexcept {
  head.checksum = 0;
  std::byte bytes[frame_bytes];
  encode(head, bytes);
  return crc32c(slice, head.slice_bytes, crc32c(bytes, frame_bytes));
}

inline void add_checksum(frame& head, std::byte const* slice) noexcept {
  head.flags |= frame::is_checked;
  head.checksum = checksum_of(head, slice);
}
// Or it has none.
[[nodiscard]] inline bool fits_checksum(frame const& head, std::byte const* slice) noexcept {
  return (head.flags & frame::is_checked) == 0 || checksum_of(head, slice) == head.checksum;
}

}  // namespace collx::inline abi_1::transport::sockets
