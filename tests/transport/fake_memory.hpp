// SPDX-License-Identifier: Apache-2.0
// Memory as a CUDA driver sees it, without one: allocations come and go at chosen addresses, each with an
// identity that no other has, and what is asked about them is counted.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "collx/transport/cuda/memory_kinds.hpp"

namespace fake_memory {

using collx::transport::cuda_parts::place_kind;
using collx::transport::cuda_parts::memory_place;

inline constexpr std::uintptr_t unit = 256;
// Unit 0 of the addresses that tests use; nothing is ever stored there.
inline constexpr std::uintptr_t origin = 0x7f00'0000'0000;

[[nodiscard]] inline std::uintptr_t address_of(std::size_t unit_number) {
  return origin + unit * unit_number;
}
[[nodiscard]] inline void const* pointer_to(std::uintptr_t address) {
  return reinterpret_cast<void const*>(address);
}

class space {
 public:
  // An allocation and the times, in events of this space, at which it was made and freed.
  struct life {
    memory_place place;
    std::uint64_t born;
    std::uint64_t died = ~std::uint64_t{0};
  };

  // False, and nothing happens, where something lies already.
  bool allocate(std::uintptr_t base, std::size_t bytes, place_kind kind, int device) {
    std::lock_guard const only_me(mutex_);
    memory_place const place{kind, device, base, bytes, lives_.size() + 1};
    auto const next = live_.lower_bound(base);
    if (next != live_.end() && next->second.overlaps(place)) return false;
    if (next != live_.begin() && std::prev(next)->second.overlaps(place)) return false;
    live_.emplace(base, place);
    lives_.push_back({place, ++now_});
    return true;
  }
  // `base` is where an allocation begins.
  void release(std::uintptr_t base) {
    std::lock_guard const only_me(mutex_);
    lives_[live_.at(base).id - 1].died = ++now_;
    live_.erase(base);
  }
  [[nodiscard]] bool begins_at(std::uintptr_t base) {
    std::lock_guard const only_me(mutex_);
    return live_.contains(base);
  }
  // The model: what there is at an address; empty if it is nothing of CUDA's.
  [[nodiscard]] memory_place at(std::uintptr_t address) {
    std::lock_guard const only_me(mutex_);
    auto const next = live_.upper_bound(address);
    if (next == live_.begin()) return {};
    memory_place const& place = std::prev(next)->second;
    return place.contains(address) ? place : memory_place{};
  }
  [[nodiscard]] std::uint64_t now() {
    std::lock_guard const only_me(mutex_);
    return now_;
  }
  // By identity, from 1 on. Not while other threads allocate.
  [[nodiscard]] std::vector<life> const& lives() const { return lives_; }

  std::atomic<std::uint64_t> id_queries{0}, descriptions{0};
  std::atomic<int> failure{0};  // what the driver says instead of a description
  bool has_identities = true;
  std::function<void()> between{};  // called between the parts of a description

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, memory_place> live_;
  std::vector<life> lives_;
  std::uint64_t now_ = 0;
};

// Reads each part of a description at a time of its own, as a driver may.
struct driver {
  space* of;

  [[nodiscard]] std::uint64_t id_of(std::uintptr_t address) noexcept {
    ++of->id_queries;
    return of->failure != 0 || !of->has_identities ? 0 : of->at(address).id;
  }
  [[nodiscard]] int describe(std::uintptr_t address, memory_place& place) noexcept {
    ++of->descriptions;
    if (of->failure != 0) return of->failure;
    memory_place const kinds = of->at(address);
    if (kinds.kind == place_kind::host) return 0;
    place.kind = kinds.kind;
    place.device = kinds.device;
    if (of->between) of->between();
    place.id = of->has_identities ? of->at(address).id : 0;
    if (of->between) of->between();
    memory_place const extent = of->at(address);
    place.base = extent.base;
    place.bytes = extent.bytes;
    return 0;
  }
};

using kinds = collx::transport::cuda_parts::memory_kinds<driver>;

}  // namespace fake_memory
