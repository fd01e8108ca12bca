// SPDX-License-Identifier: Apache-2.0
// A heap array whose size is fixed when it is made: what communicators are made of. <memory> and
// the growing part of <vector> would cost every user compile time for nothing.
#pragma once

#include <cstddef>
#include <new>

#include "collx/core/config.hpp"

namespace collx::inline abi_1 {

template <class T>
class array {
 public:
  array() = default;
  explicit array(std::size_t count) : data_(count == 0 ? nullptr : new T[count]()), size_(count) {}
  array(array&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
    other.size_ = 0;
  }
  array& operator=(array&& other) noexcept {
    T* const data = data_;
    std::size_t const size = size_;
    data_ = other.data_;
    size_ = other.size_;
    other.data_ = data;
    other.size_ = size;
    return *this;
  }
  array(array const&) = delete;
  array& operator=(array const&) = delete;
  ~array() { delete[] data_; }

  // Of so many new elements from now on. Less to compile than to assign another array.
  void reset(std::size_t count) {
    T* const made = count == 0 ? nullptr : new T[count]();
    delete[] data_;
    data_ = made;
    size_ = count;
  }

  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] T const& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] T const* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + size_; }
  [[nodiscard]] T const* begin() const noexcept { return data_; }
  [[nodiscard]] T const* end() const noexcept { return data_ + size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace collx::inline abi_1
