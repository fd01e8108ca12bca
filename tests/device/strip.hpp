// SPDX-License-Identifier: Apache-2.0
// Memory for tests that write vectors of any alignment: guarded on both sides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace device_test {

// `count` elements, `shift` bytes behind a cache line.
template <class T>
class strip {
 public:
  strip(std::size_t count, std::size_t shift)
      : bytes_(count * sizeof(T) + 256, std::byte{0xAB}), count_(count) {
    std::size_t const line = 64 - reinterpret_cast<std::uintptr_t>(bytes_.data()) % 64;
    begin_ = line + shift;
  }
  T* data() { return reinterpret_cast<T*>(bytes_.data() + begin_); }
  bool guards_intact() const {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      if ((i < begin_ || i >= begin_ + count_ * sizeof(T)) && bytes_[i] != std::byte{0xAB}) return false;
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t count_, begin_;
};

}  // namespace device_test
