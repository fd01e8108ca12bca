// SPDX-License-Identifier: Apache-2.0
// Memory of a block's shared variables. PTX keeps their addresses in registers of 32 bits as well (mov.u32,
// and a conversion before cvta.shared), so they lie where 32 bits are enough.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>

#include <sys/mman.h>

namespace emulated {

class low_memory {
 public:
  low_memory() = default;
  low_memory(low_memory const&) = delete;
  ~low_memory() { release(); }

  void assign(std::size_t bytes, std::byte value) {
    release();
    if (bytes == 0) return;
    void* const at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(at);
    size_ = bytes;
    std::memset(data_, std::to_integer<int>(value), bytes);
  }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  void release() noexcept {
    if (size_ != 0) (void)munmap(data_, size_);
    size_ = 0;
  }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace emulated
