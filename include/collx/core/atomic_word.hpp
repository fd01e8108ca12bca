// SPDX-License-Identifier: Apache-2.0
// A word that threads or processes share: std::atomic, but for what that costs a compiler. libstdc++ has each
// load and store compiled where it is called, with checks of the order, optimised or not. These are functions
// unless it is optimised, and the same instructions where it is.
#pragma once

#include <atomic>
#include <type_traits>

#include "collx/core/config.hpp"

namespace collx::inline abi_1 {

// Zero when it is made, as zeroed memory is. Without optimisation the order is no constant, and compilers may
// take a stricter one.
template <class T>
class atomic_word {
  static_assert(std::is_integral_v<T> && __atomic_always_lock_free(sizeof(T), nullptr),
                "collx: a word that every processor stores whole; a lock would be another process's own");

 public:
  atomic_word() = default;
  constexpr atomic_word(T value) noexcept : value_(value) {}
  atomic_word(atomic_word const&) = delete;
  atomic_word& operator=(atomic_word const&) = delete;

  // As the members of std::atomic with these names.
  [[nodiscard]] COLLX_ALWAYS_INLINE T
  load(std::memory_order order = std::memory_order_seq_cst) const noexcept {
    return __atomic_load_n(&value_, static_cast<int>(order));
  }
  COLLX_ALWAYS_INLINE void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    __atomic_store_n(&value_, value, static_cast<int>(order));
  }
  COLLX_ALWAYS_INLINE T exchange(T value, std::memory_order order) noexcept {
    return __atomic_exchange_n(&value_, value, static_cast<int>(order));
  }
  COLLX_ALWAYS_INLINE bool compare_exchange_strong(T& expected, T wanted, std::memory_order order,
                                                   std::memory_order on_failure) noexcept {
    return __atomic_compare_exchange_n(&value_, &expected, wanted, false, static_cast<int>(order),
                                       static_cast<int>(on_failure));
  }
  COLLX_ALWAYS_INLINE T fetch_add(T more, std::memory_order order) noexcept {
    return __atomic_fetch_add(&value_, more, static_cast<int>(order));
  }
  COLLX_ALWAYS_INLINE T fetch_sub(T less, std::memory_order order) noexcept {
    return __atomic_fetch_sub(&value_, less, static_cast<int>(order));
  }
  COLLX_ALWAYS_INLINE T fetch_or(T bits, std::memory_order order) noexcept {
    return __atomic_fetch_or(&value_, bits, static_cast<int>(order));
  }

 private:
  alignas(sizeof(T)) T value_ = 0;  // std::atomic's alignment: a word in no two lines
};

}  // namespace collx::inline abi_1
