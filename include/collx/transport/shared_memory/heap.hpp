// SPDX-License-Identifier: Apache-2.0
// Symmetric memory of one rank: hands out parts of its own region of the segment. Peers read what
// lies there, never the bookkeeping, which is private to the owner.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <new>
#include <utility>

#include "collx/core/error.hpp"
#include "collx/core/mutex.hpp"

namespace collx::inline abi_1::transport::shared_memory {

// First fit over an address-ordered list of free parts, merged when they touch. Parts are whole
// pages: large buffers are what it is for, and a freed one is given back to the system.
class heap {
 public:
  heap(std::byte* begin, std::size_t bytes)
      : begin_(begin), bytes_(bytes), free_(new part{0, bytes, nullptr}) {}
  heap(heap const&) = delete;
  ~heap() {
    while (free_ != nullptr) delete std::exchange(free_, free_->next);
  }

  // Zeroed memory on whole pages. Throws error (out_of_memory).
  [[nodiscard]] std::byte* allocate(std::size_t bytes) {
    std::size_t const wanted = rounded(bytes);
    posix_lock const only_me(mutex_);
    for (part** link = &free_; *link != nullptr; link = &(*link)->next) {
      part* const found = *link;
      if (found->bytes < wanted) continue;
      std::byte* const p = begin_ + found->offset;
      found->offset += wanted;
      found->bytes -= wanted;
      if (found->bytes == 0) {
        *link = found->next;
        delete found;
      }
      return p;
    }
    char text[200];
    std::snprintf(text, sizeof text, "no %zu bytes of symmetric memory are left of %zu; free buffers, or set "
                  "COLLX_HEAP_BYTES to more on every rank", bytes, bytes_);
    throw error(status::out_of_memory, text);
  }

  void deallocate(std::byte* p, std::size_t bytes) noexcept {
    std::size_t const size = rounded(bytes);
    // Gives the pages back; the next owner finds zeros. Where that is refused, zero them here.
    if (madvise(p, size, MADV_REMOVE) != 0) std::memset(p, 0, size);
    posix_lock const only_me(mutex_);
    std::size_t const offset = static_cast<std::size_t>(p - begin_);
    part** link = &free_;
    part* before = nullptr;
    while (*link != nullptr && (*link)->offset < offset) {
      before = *link;
      link = &before->next;
    }
    if (before != nullptr && before->offset + before->bytes == offset) {
      before->bytes += size;
      merge_with_next(before);
    } else {
      part* const freed = new (std::nothrow) part{offset, size, *link};
      if (freed == nullptr) return;  // cannot be noted as free: lost to this heap until it ends
      *link = freed;
      merge_with_next(freed);
    }
  }

 private:
  struct part {
    std::size_t offset, bytes;
    part* next;
  };

  [[nodiscard]] static std::size_t rounded(std::size_t bytes) noexcept {
    return bytes == 0 ? 4096 : (bytes + 4095) / 4096 * 4096;
  }

  static void merge_with_next(part* p) noexcept {
    part* const next = p->next;
    if (next == nullptr || p->offset + p->bytes != next->offset) return;
    p->bytes += next->bytes;
    p->next = next->next;
    delete next;
  }

  std::byte* begin_;
  std::size_t bytes_;
  part* free_;
  posix_mutex mutex_;
};

}  // namespace collx::inline abi_1::transport::shared_memory
