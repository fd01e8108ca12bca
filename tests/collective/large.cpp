// SPDX-License-Identifier: Apache-2.0
// More than 2^31 elements in one call, of one byte. Takes up to 10 GiB of memory and some seconds: asked for
// with COLLX_TEST_LARGE=1 (`COLLX_TEST_LARGE=1 ctest -L large`), and then skipped, in words, where there is
// less memory.
// compiled: as users do
// sanitizers: no, they take several times the memory, of which there is none left
// ctest: LABELS large
// ctest: TIMEOUT 600
// ctest: RUN_SERIAL ON
// ctest: SKIP_REGULAR_EXPRESSION SKIPPED:
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include "asked_for.hpp"
#include "collx/algo/ring.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/transport/zeroed_pages.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;

constexpr std::size_t count = (std::size_t{1} << 31) + 5;

// What the kernel could give without taking it from anybody.
std::size_t free_bytes() {
  std::size_t kilobytes = 0;
  char line[200];
  std::FILE* const file = std::fopen("/proc/meminfo", "r");
  if (file == nullptr) return 0;
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::sscanf(line, "MemAvailable: %zu kB", &kilobytes) == 1) break;
  std::fclose(file);
  return kilobytes * 1024;
}

// Whether to run what takes four buffers of `count` bytes at once, and a little; says why not. Of all cases
// or none: ctest takes the word for a test that did not run, whatever else it printed.
bool may_run() {
  if (!is_asked_for("COLLX_TEST_LARGE", "10 GiB of memory")) return false;
  std::size_t const spare = std::size_t{1} << 30, needed = 4 * count + spare, there = free_bytes();
  if (there >= needed) return true;
  std::printf("SKIPPED: it takes %zu MiB of memory, of which %zu MiB are free\n", needed >> 20, there >> 20);
  return false;
}
bool const runs = may_run();

// Eight bytes of a rank's contribution at once, different at any two places: no wrong cut goes unseen.
std::uint64_t word(rank_t rank, std::size_t i) {
  std::uint64_t const x = (i * 2 + static_cast<std::size_t>(rank) + 1) * 0x9e3779b97f4a7c15u;
  return x ^ x >> 29;
}
// Eight sums of a byte each.
std::uint64_t sum_of_bytes(std::uint64_t a, std::uint64_t b) {
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

template <class Algorithm>
constexpr auto reduced = [](auto& comm) {
  buffer mine(count);
  fill(mine.all, [&](std::size_t i) { return word(comm.rank(), i); });
  collx::all_reduce<Algorithm>(comm, mine.all, collx::sum);
  check(mine.all, [](std::size_t i) { return sum_of_bytes(word(0, i), word(1, i)); });
};
constexpr auto broadcast = [](auto& comm) {
  buffer mine(count);
  if (comm.rank() == 1) fill(mine.all, [](std::size_t i) { return word(1, i); });
  collx::broadcast(comm, mine.all, 1);
  check(mine.all, [](std::size_t i) { return word(1, i); });
};
// In place: each rank's own block is there.
constexpr auto gathered = [](auto& comm) {
  buffer mine(2 * count);
  bytes const own = mine.all.subspan(static_cast<std::size_t>(comm.rank()) * count, count);
  fill(own, [&](std::size_t i) { return word(comm.rank(), i); });
  collx::all_gather(comm, own, mine.all);
  for (rank_t const r : {0, 1})
    check(mine.all.subspan(static_cast<std::size_t>(r) * count, count),
          [&](std::size_t i) { return word(r, i); });
};

void on_processes(auto const& rank_main) {
  for (int const code : watched::on_processes(2, rank_main)) CHECK(code == 0);
}

}  // namespace

TEST_CASE("2^31 + 5 elements: all_reduce on threads, as the library chooses and around a ring" *
          doctest::skip(!runs)) {
  watched::on_threads(2, reduced<collx::automatic>);
  watched::on_threads(2, reduced<collx::algo::ring>);
}

TEST_CASE("2^31 + 5 elements: all_reduce and broadcast on processes" * doctest::skip(!runs)) {
  on_processes(reduced<collx::automatic>);
  on_processes(broadcast);
}

TEST_CASE("2^31 + 5 elements of each rank: all_gather on processes" * doctest::skip(!runs)) {
  on_processes(gathered);
}
