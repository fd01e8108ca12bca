// SPDX-License-Identifier: Apache-2.0
// The sizes and times a world is made with. Those of rank 0 hold for all ranks of shm, and its staging_bytes
// for those of tcp and composite that meet; else every rank has its own, of which staging_bytes and sharing
// must be the same.
#pragma once

#include "collx/core/environment.hpp"
#include "collx/device/cpu.hpp"

namespace collx::inline abi_1::transport {

// The most ranks of one world on one machine. More are a mistake, and would take it down.
inline constexpr rank_t size_max = 4096;

// Throws error (bad_argument) for a number of ranks that no world has. `who`: the function that was given it.
COLLX_COLD inline void require_size(char const* who, rank_t size) {
  if (size < 1 || size > size_max)
    throw_error(status::bad_argument, "%s: the number of ranks must be at least 1 and at most %d (given %d)",
                who, size_max, size);
}

struct settings {
  std::uint64_t timeout_us = 30'000'000;   // COLLX_TIMEOUT_US: the longest wait before status::timeout
  std::size_t staging_bytes = 1 << 19;     // COLLX_STAGING_BYTES: per rank and lane, used when touched
  std::size_t heap_bytes = heap_default;   // COLLX_HEAP_BYTES: for symmetric memory, per rank (shm)
  std::uint32_t yield_us = 200;            // COLLX_YIELD_US: a rank that waits sleeps after it; 0: at once
  // COLLX_SINGLE_COPY_BYTES: private payloads from this size on may be copied once, by their receivers,
  // where the system lets processes read each other's memory; 0: never (shm). By default from 64 KiB on;
  // where ranks share processors, only what gains by it all the same (docs/transports.md, "Single copy").
  std::size_t single_copy_bytes = by_processors;
  // Where the system takes more than so many times as long as a copy to copy one more page, as any rank
  // finds, nothing is copied once by default but while staging is slow; from 0.85 of that on, both are timed.
  // At 6 one copy by the system takes up to three times as long as two by processes whose cores share a cache
  // (docs/decisions.md).
  double system_copy_cost_max = 3.3;
  // COLLX_HUGE_PAGES: 1: large symmetric buffers lie on huge pages where the system has them, and take their
  // memory when allocated; 0: all memory is taken in small pages, when touched (shm).
  std::int32_t huge_pages = 1;
  // Some machine has more ranks than processors: who waits yields at once, and over tcp and composite other
  // algorithms are chosen. Found where ranks meet, and the same on all (but for shm, which looks itself);
  // ranks that a program joins by hand say it here, all alike.
  bool sharing = false;
  static constexpr std::size_t by_processors = static_cast<std::size_t>(-1);

  // Address space, not memory: pages are taken when touched. The thread sanitizer shadows address
  // space at four times its size, so it gets less.
#if defined(__SANITIZE_THREAD__)
  static constexpr std::size_t heap_default = std::size_t{1} << 30;
#else
  static constexpr std::size_t heap_default = std::size_t{16} << 30;
#endif

  // As worlds take them, whoever has made them: memory is cut in whole lines and pages. Throws error
  // (bad_argument) naming a size with which no message could be sent, or which no machine has.
  [[nodiscard]] COLLX_COLD settings checked() const {
    if (staging_bytes < staging_min || staging_bytes > staging_max)
      throw_error(status::bad_argument, "settings.staging_bytes is %zu; set it to %zu to %zu", staging_bytes,
                  staging_min, staging_max);
    if (heap_bytes > heap_max)
      throw_error(status::bad_argument, "settings.heap_bytes is %zu; set it to at most %zu", heap_bytes,
                  heap_max);
    settings made = *this;
    made.staging_bytes = (staging_bytes + 4095) / 4096 * 4096;  // what lies behind it begins with a page
    made.heap_bytes = (heap_bytes + 4095) / 4096 * 4096;
    return made;
  }
  static constexpr std::size_t staging_min = 4096, staging_max = std::size_t{1} << 30,
                               heap_max = std::size_t{1} << 44;

  // Throws error (bad_argument) naming the variable that is wrong.
  [[nodiscard]] COLLX_COLD static settings from_environment() {
    settings chosen;
    device::cpu::require_named_vectors();
    auto const read = [](char const* variable, std::uint64_t otherwise, std::int64_t low, std::int64_t high) {
      return static_cast<std::uint64_t>(
          environment::number(variable, static_cast<std::int64_t>(otherwise), low, high));
    };
    chosen.timeout_us = read("COLLX_TIMEOUT_US", chosen.timeout_us, 1, std::int64_t{1} << 50);
    chosen.staging_bytes = read("COLLX_STAGING_BYTES", chosen.staging_bytes, 1 << 16, staging_max);
    chosen.heap_bytes = read("COLLX_HEAP_BYTES", chosen.heap_bytes, 1 << 20, heap_max);
    chosen.yield_us = static_cast<std::uint32_t>(read("COLLX_YIELD_US", chosen.yield_us, 0, 1'000'000'000));
    auto const huge_pages = static_cast<std::uint64_t>(chosen.huge_pages);
    chosen.huge_pages = read("COLLX_HUGE_PAGES", huge_pages, 0, 1) != 0;
    std::int64_t const single = environment::number("COLLX_SINGLE_COPY_BYTES", -1, 0, std::int64_t{1} << 50);
    if (single >= 0) chosen.single_copy_bytes = static_cast<std::size_t>(single);
    return chosen.checked();
  }
};

}  // namespace collx::inline abi_1::transport
