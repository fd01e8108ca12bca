// SPDX-License-Identifier: Apache-2.0
// Whether a program writes its input anew before each call. Lines that it has written lie in the caches of
// its processor. A peer that reads them where they lie takes them away, and the next write takes them back; a
// copy in staging leaves them. A program that passes what it has not written since is better read from, and
// so is one that passes many buffers in turn, none of which is in a cache (docs/decisions.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::exec {

// Of a few buffers, each in one place. What it says decides how bytes travel, and never which.
class input_history {
 public:
  // Smaller ones are copied anyway.
  static constexpr std::size_t bytes_min = 2048;

  // Whether `bytes` at `input` are other ones than when this was last asked of them, as far as four words of
  // them show. Not, if the last two questions in this place were not of them: then nothing is read, which
  // might be far away. `bytes`: bytes_min at least. Used by the thread whose call it is.
  [[nodiscard]] COLLX_ALWAYS_INLINE bool is_rewritten(std::byte const* input, std::size_t bytes) noexcept {
    seen& last = seen_[place_of(input)];
    if (last.input != input || last.bytes != bytes) {
      last = {input, bytes, 0, false};
      return false;
    }
    std::uint64_t const now = words(input, bytes);
    bool const differs = last.has_words && last.words != now;
    last.words = now;
    last.has_words = true;
    return differs;
  }

 private:
  static constexpr std::size_t places = 8;

  // Buffers begin on lines or pages.
  [[nodiscard]] static std::size_t place_of(std::byte const* input) noexcept {
    auto const address = reinterpret_cast<std::uintptr_t>(input);
    return (address / 64 ^ address / 4096) % places;
  }

  [[nodiscard]] COLLX_ALWAYS_INLINE static std::uint64_t word(std::byte const* at) noexcept {
    std::uint64_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  // Four of them, from begin to end, as one.
  [[nodiscard]] COLLX_ALWAYS_INLINE static std::uint64_t words(std::byte const* input,
                                                               std::size_t bytes) noexcept {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;
    std::size_t const third = (bytes - sizeof(std::uint64_t)) / 3;
    std::uint64_t all = word(input);
    for (std::size_t i = 1; i <= 3; ++i) all = all * odd + word(input + i * third);
    return all;
  }

  struct seen {
    std::byte const* input = nullptr;
    std::size_t bytes = 0;
    std::uint64_t words = 0;
    bool has_words = false;
  };
  seen seen_[places];
};

}  // namespace collx::inline abi_1::exec
