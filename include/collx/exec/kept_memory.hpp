// SPDX-License-Identifier: Apache-2.0
// Memory for calls that need more than lanes have, of a size that only they know: taken when a call begins,
// and kept for the next one when it ends, so that a call that is repeated allocates once.
#pragma once

#include <cstddef>
#include <new>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::exec {

// Pieces in a list, each of which one call has at a time. Used by the thread that uses the engine.
class kept_memory {
 public:
  static constexpr std::size_t alignment = 64;

  kept_memory() = default;
  kept_memory(kept_memory const&) = delete;
  kept_memory& operator=(kept_memory const&) = delete;
  ~kept_memory() {
    while (first_ != nullptr) drop(first_);
  }

  // The smallest free piece that suffices; else a new one, in the place of a free one that is too small.
  // Throws std::bad_alloc.
  [[nodiscard]] COLLX_COLD std::byte* take(std::size_t bytes) {
    piece** found = nullptr;
    piece** too_small = nullptr;
    for (piece** at = &first_; *at != nullptr; at = &(*at)->next) {
      if ((*at)->taken) continue;
      if ((*at)->bytes < bytes) too_small = at;
      else if (found == nullptr || (*at)->bytes < (*found)->bytes) found = at;
    }
    if (found == nullptr) {
      if (too_small != nullptr) drop(*too_small);
      if (bytes > static_cast<std::size_t>(-1) / 2) throw std::bad_alloc();
      void* const memory = ::operator new(sizeof(piece) + bytes, std::align_val_t(alignment));
      first_ = ::new (memory) piece{first_, bytes, false};
      found = &first_;
    }
    (*found)->taken = true;
    return reinterpret_cast<std::byte*>(*found) + sizeof(piece);
  }
  // What take() returned.
  void give(std::byte* memory) noexcept {
    std::launder(reinterpret_cast<piece*>(memory - sizeof(piece)))->taken = false;
  }

 private:
  struct alignas(alignment) piece {
    piece* next;
    std::size_t bytes;
    bool taken;
  };

  static void drop(piece*& at) noexcept {
    piece* const dropped = at;
    at = dropped->next;
    ::operator delete(static_cast<void*>(dropped), std::align_val_t(alignment));
  }

  piece* first_ = nullptr;
};

}  // namespace collx::inline abi_1::exec
