// SPDX-License-Identifier: Apache-2.0
// More than 2^31 elements in one call, of one byte: what the large tests fill buffers with and find in them,
// and whether there is memory for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

#include "asked_for.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "collx/transport/zeroed_pages.hpp"

namespace large {

using collx::rank_t;

// Above 2^31 by so much that several fragments begin there, whatever the transport cuts off.
inline constexpr std::size_t count = (std::size_t{1} << 31) + (std::size_t{1} << 26) + 5;

// A number of bytes that a file holds; the most there is without such a file, or where it says "max".
inline std::size_t bytes_in(char const* path) {
  std::size_t bytes = SIZE_MAX;
  std::FILE* const file = std::fopen(path, "r");
  if (file == nullptr) return bytes;
  if (std::fscanf(file, "%zu", &bytes) != 1) bytes = SIZE_MAX;
  std::fclose(file);
  return bytes;
}

// What the kernel could give without taking it from anybody, and a container's limit leaves.
inline std::size_t free_bytes() {
  std::size_t const limit = bytes_in("/sys/fs/cgroup/memory.max");
  std::size_t const used = limit == SIZE_MAX ? 0 : bytes_in("/sys/fs/cgroup/memory.current");
  std::size_t kilobytes = 0;
  char line[200];
  std::FILE* const file = std::fopen("/proc/meminfo", "r");
  if (file == nullptr) return 0;
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::sscanf(line, "MemAvailable: %zu kB", &kilobytes) == 1) break;
  std::fclose(file);
  return std::min(kilobytes * 1024, limit - std::min(limit, used));
}

// Whether to run what takes four buffers of `count` bytes at once, and a little; says why not. Of all cases
// or none: ctest takes the word for a test that did not run, whatever else it printed.
inline bool may_run() {
  if (!is_asked_for("COLLX_TEST_LARGE", "10 GiB of memory")) return false;
  std::size_t const spare = std::size_t{1} << 30, needed = 4 * count + spare, there = free_bytes();
  if (there >= needed) return true;
  std::printf("SKIPPED: it takes %zu MiB of memory, of which %zu MiB are free\n", needed >> 20, there >> 20);
  return false;
}
inline bool const runs = may_run();

// Eight bytes of a rank's contribution at once, different at any two places: no wrong cut goes unseen.
inline std::uint64_t word(rank_t rank, std::size_t i) {
  std::uint64_t const x = (i * 2 + static_cast<std::size_t>(rank) + 1) * 0x9e3779b97f4a7c15u;
  return x ^ x >> 29;
}
// Eight sums of a byte each.
inline std::uint64_t sum_of_bytes(std::uint64_t a, std::uint64_t b) {
  std::uint64_t const high = 0x8080808080808080u;
  return ((a & ~high) + (b & ~high)) ^ ((a ^ b) & high);
}

using bytes = std::span<unsigned char>;

template <class F>
void fill(bytes all, F const& value) {
  std::size_t const words = all.size() / 8;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t const v = value(i);
    std::memcpy(all.data() + i * 8, &v, 8);
  }
  std::uint64_t const last = value(words);
  std::memcpy(all.data() + words * 8, &last, all.size() % 8);
}
template <class F>
void check(bytes all, F const& value) {
  std::size_t const words = all.size() / 8;
  std::uint64_t is = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::memcpy(&is, all.data() + i * 8, 8);
    if (is != value(i)) throw std::runtime_error("wrong at " + std::to_string(i * 8));
  }
  std::uint64_t const last = value(words);
  if (std::memcmp(all.data() + words * 8, &last, all.size() % 8) != 0)
    throw std::runtime_error("wrong at the end");
}

struct buffer {
  explicit buffer(std::size_t elements) : memory(elements), all(begin(), elements) {}
  unsigned char* begin() { return reinterpret_cast<unsigned char*>(memory.data()); }
  collx::transport::zeroed_pages memory;
  bytes all;
};

// Block `of` of a vector of two, and the words that a rank contributes to it.
inline bytes block(bytes all, rank_t of) { return all.subspan(static_cast<std::size_t>(of) * count, count); }
inline std::uint64_t word(rank_t rank, rank_t of, std::size_t i) {
  return word(rank, static_cast<std::size_t>(of) * (count / 8 + 1) + i);
}

// In place: each rank's own block of the result takes the place of what it gave for it.
inline constexpr auto reduced_and_scattered = [](auto& comm) {
  buffer mine(2 * count);
  rank_t const own = comm.rank(), other = 1 - own;
  for (rank_t const b : {0, 1}) fill(block(mine.all, b), [&](std::size_t i) { return word(own, b, i); });
  bytes const result = block(mine.all, own);
  collx::reduce_scatter(comm, mine.all, result, collx::sum);
  check(result, [&](std::size_t i) { return sum_of_bytes(word(0, own, i), word(1, own, i)); });
  check(block(mine.all, other), [&](std::size_t i) { return word(own, other, i); });
};

}  // namespace large
