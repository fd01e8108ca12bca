// SPDX-License-Identifier: Apache-2.0
// Private zeroed memory whose pages are taken when first touched: reserving much costs nothing.
#pragma once

#include <sys/mman.h>

#include <utility>

#include "collx/core/error.hpp"

namespace collx::inline abi_1::transport {

// Throws error (out_of_memory). Unmap with unmap_zeroed and the same size.
[[nodiscard]] inline std::byte* map_zeroed(std::size_t bytes) {
  void* const p = mmap(nullptr, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    throw_error(status::out_of_memory, "cannot map %zu bytes; free memory or pass a smaller count", bytes);
  return static_cast<std::byte*>(p);
}

inline void unmap_zeroed(std::byte* p, std::size_t bytes) noexcept { munmap(p, bytes == 0 ? 1 : bytes); }

class zeroed_pages {
 public:
  zeroed_pages() = default;
  explicit zeroed_pages(std::size_t bytes) : data_(map_zeroed(bytes)), bytes_(bytes) {}
  zeroed_pages(zeroed_pages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  zeroed_pages& operator=(zeroed_pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~zeroed_pages() {
    if (data_ != nullptr) unmap_zeroed(data_, bytes_);
  }
  // It stays mapped for ever: somebody may write to it yet, and cannot be stopped.
  void abandon() noexcept { data_ = nullptr; }
  [[nodiscard]] std::byte* data() noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace collx::inline abi_1::transport
