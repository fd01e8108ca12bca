// SPDX-License-Identifier: Apache-2.0
// A growing array for constant expressions. The verifier uses it instead of std::vector because
// it costs compilers a fraction of the evaluation steps, and users' headers nothing to include.
#pragma once

#include "collx/core/types.hpp"

namespace collx::inline abi_1::detail {

template <class T>
class table {
 public:
  constexpr table() = default;
  constexpr explicit table(std::int64_t count) : data_(allocate(count)), size_(count), capacity_(count) {}
  table(table const&) = delete;
  table& operator=(table const&) = delete;
  constexpr ~table() { delete[] data_; }

  [[nodiscard]] constexpr T& operator[](std::int64_t index) { return data_[index]; }
  [[nodiscard]] constexpr T const& operator[](std::int64_t index) const { return data_[index]; }
  [[nodiscard]] constexpr std::int32_t size() const { return static_cast<std::int32_t>(size_); }

  // Appends and returns the index of the new element.
  constexpr std::int32_t push(T const& value) {
    if (size_ == capacity_) reserve(capacity_ < 8 ? 16 : capacity_ * 2);
    data_[size_] = value;
    return static_cast<std::int32_t>(size_++);
  }

  constexpr void shrink(std::int64_t size) { size_ = size; }

 private:
  static constexpr T* allocate(std::int64_t count) { return new T[static_cast<std::size_t>(count)](); }

  constexpr void reserve(std::int64_t capacity) {
    T* const data = allocate(capacity);
    for (std::int64_t i = 0; i < size_; ++i) data[i] = data_[i];
    delete[] data_;
    data_ = data;
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::int64_t size_ = 0;
  std::int64_t capacity_ = 0;
};

}  // namespace collx::inline abi_1::detail
