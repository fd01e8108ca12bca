// SPDX-License-Identifier: Apache-2.0
// What CUDA knows of an address: the kind of memory, its device, the allocation around it, and which one of
// all that ever lay there. Plain data, without CUDA.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collx/core/status.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

enum class place_kind : std::uint8_t {
  host,    // memory that CUDA knows nothing of
  pinned,  // host memory that CUDA allocated or registered
  device,
  managed,  // moves between host and devices
};

[[nodiscard]] constexpr char const* name(place_kind kind) noexcept {
  switch (kind) {
    case place_kind::host: return "host";
    case place_kind::pinned: return "pinned host";
    case place_kind::device: return "device";
    case place_kind::managed: return "managed";
  }
  return "unknown";
}

struct memory_place {
  place_kind kind = place_kind::host;
  std::int32_t device = -1;  // as CUDA numbers them in this process; -1: host memory that CUDA does not know
  std::uintptr_t base = 0;   // where the allocation begins
  std::size_t bytes = 0;     // how long it is; 0: nobody says
  // No other allocation of this process has or had or will have it. 0: it has none, and cannot be told from
  // one that lies there later; so nothing may be kept for it.
  std::uint64_t id = 0;

  [[nodiscard]] bool contains(std::uintptr_t address) const noexcept {
    return address >= base && address - base < bytes;
  }
  // All `length` bytes from an address that contains() holds for.
  [[nodiscard]] bool reaches(std::uintptr_t address, std::size_t length) const noexcept {
    return length <= bytes - (address - base);
  }
  [[nodiscard]] bool overlaps(memory_place const& other) const noexcept {
    return bytes != 0 && other.bytes != 0 && (contains(other.base) || other.contains(base));
  }
  friend bool operator==(memory_place const&, memory_place const&) = default;
};

struct memory_answer {
  // ok; bad_argument: the range begins in `place` and ends outside of it, or (if `place` is empty) the memory
  // was freed and allocated again and again during the question; system_failure: the driver said
  // `driver_error`.
  status code = status::ok;
  int driver_error = 0;
  memory_place place = {};
};

}  // namespace collx::inline abi_1::transport::cuda_parts
