// SPDX-License-Identifier: Apache-2.0
// Huge pages for shared memory: a processor then looks up an address once per 2 MiB instead of once per
// 4 KiB, and memory is taken, and mapped by every rank that touches it, in as large pieces.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace collx::inline abi_1::transport::shared_memory {

inline constexpr std::size_t huge_page_bytes = std::size_t{1} << 21;

// From p to the first address, p included, where a huge page could begin.
[[nodiscard]] inline std::size_t bytes_to_huge_page(void const* p) noexcept {
  return (huge_page_bytes - reinterpret_cast<std::uintptr_t>(p) % huge_page_bytes) % huge_page_bytes;
}

// Asks for them where whole ones lie within a range, and takes memory for those at once. The rest is left as
// it is, and so is all of it where the system has none, or none left.
inline void use_huge_pages(std::byte* begin, std::size_t bytes) noexcept {
#if defined(MADV_COLLAPSE)
  int const put_together = MADV_COLLAPSE;
#else
  int const put_together = 25;  // unknown before Linux 6.1, and then refused
#endif
  for (std::size_t at = bytes_to_huge_page(begin); at + huge_page_bytes <= bytes; at += huge_page_bytes) {
    // There must be a small page. It is zero, and stays so.
    *reinterpret_cast<std::byte volatile*>(begin + at) = std::byte{0};
    if (madvise(begin + at, huge_page_bytes, put_together) != 0) return;
  }
}

}  // namespace collx::inline abi_1::transport::shared_memory
