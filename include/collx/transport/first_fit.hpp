// SPDX-License-Identifier: Apache-2.0
// Which parts of a region are free, as offsets: for memory that its owner hands out, whoever can read it.
// Knows nothing of the memory itself, which may lie on a GPU.
#pragma once

#include <cstddef>
#include <new>

#include "collx/core/mutex.hpp"

namespace collx::inline abi_1::transport {

// First fit over an address-ordered list of free parts, merged when they touch. Any thread.
class first_fit {
 public:
  static constexpr std::size_t nothing = ~std::size_t{0};

  // Parts are multiples of `unit_bytes`, and so are the offsets.
  first_fit(std::size_t bytes, std::size_t unit_bytes)
      : unit_bytes_(unit_bytes), free_(new part{0, bytes / unit_bytes * unit_bytes, nullptr}) {}
  first_fit(first_fit const&) = delete;
  ~first_fit() {
    while (part* const first = free_) {
      free_ = first->next;
      delete first;
    }
  }

  // What a part of that many bytes takes.
  [[nodiscard]] std::size_t rounded(std::size_t bytes) const noexcept {
    return bytes == 0 ? unit_bytes_ : (bytes + unit_bytes_ - 1) / unit_bytes_ * unit_bytes_;
  }

  // Where the part begins; `nothing` if no free one is large enough.
  [[nodiscard]] std::size_t take(std::size_t bytes) noexcept {
    if (bytes > nothing - unit_bytes_) return nothing;  // rounded() would begin at 0 again
    std::size_t const wanted = rounded(bytes);
    posix_lock const only_me(mutex_);
    for (part** link = &free_; *link != nullptr; link = &(*link)->next) {
      part* const found = *link;
      if (found->bytes < wanted) continue;
      std::size_t const offset = found->offset;
      found->offset += wanted;
      found->bytes -= wanted;
      if (found->bytes == 0) {
        *link = found->next;
        delete found;
      }
      return offset;
    }
    return nothing;
  }

  // The same offset and bytes as of take().
  void give_back(std::size_t offset, std::size_t bytes) noexcept {
    std::size_t const size = rounded(bytes);
    posix_lock const only_me(mutex_);
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
      if (freed == nullptr) return;  // cannot be noted as free: lost until the region ends
      *link = freed;
      merge_with_next(freed);
    }
  }

 private:
  struct part {
    std::size_t offset, bytes;
    part* next;
  };

  static void merge_with_next(part* p) noexcept {
    part* const next = p->next;
    if (next == nullptr || p->offset + p->bytes != next->offset) return;
    p->bytes += next->bytes;
    p->next = next->next;
    delete next;
  }

  posix_mutex mutex_;
  std::size_t unit_bytes_;
  part* free_;
};

}  // namespace collx::inline abi_1::transport
