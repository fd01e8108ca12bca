// SPDX-License-Identifier: Apache-2.0
// Symmetric memory of one rank: hands out parts of its own region of the segment. Peers read what
// lies there, never the bookkeeping, which is private to the owner.
#pragma once

#include <sys/mman.h>

#include <cstring>

#include "collx/core/error.hpp"
#include "collx/transport/first_fit.hpp"

namespace collx::inline abi_1::transport::shared_memory {

// Parts are whole pages: large buffers are what it is for, and a freed one is given back to the system.
class heap {
 public:
  heap(std::byte* begin, std::size_t bytes) : begin_(begin), bytes_(bytes), parts_(bytes, page_bytes) {}

  // Zeroed memory on whole pages. Throws error (out_of_memory).
  [[nodiscard]] std::byte* allocate(std::size_t bytes) {
    std::size_t const offset = parts_.take(bytes);
    if (offset != first_fit::nothing) return begin_ + offset;
    throw_error(status::out_of_memory,
                "no %zu bytes of symmetric memory are left of %zu; free buffers, or set "
                "COLLX_HEAP_BYTES to more on every rank",
                bytes, bytes_);
  }

  void deallocate(std::byte* p, std::size_t bytes) noexcept {
    std::size_t const size = parts_.rounded(bytes);
    // Gives the pages back; the next owner finds zeros. Where that is refused, zero them here.
    if (madvise(p, size, MADV_REMOVE) != 0) std::memset(p, 0, size);
    parts_.give_back(static_cast<std::size_t>(p - begin_), bytes);
  }

 private:
  static constexpr std::size_t page_bytes = 4096;

  std::byte* begin_;
  std::size_t bytes_;
  first_fit parts_;
};

}  // namespace collx::inline abi_1::transport::shared_memory
