// SPDX-License-Identifier: Apache-2.0
// More than 2^31 elements in one call. Takes 5 GiB of memory and some seconds: asked for with
// COLLX_TEST_LARGE=1 only.
// ctest: LABELS large
// ctest: TIMEOUT 600
// ctest: RUN_SERIAL ON
#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include "collx/algo/ring.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/transport/zeroed_pages.hpp"
#include "watched.hpp"

namespace {

constexpr std::size_t count = (std::size_t{1} << 31) + 5;

bool asked_for() {
  char const* const value = std::getenv("COLLX_TEST_LARGE");
  return value != nullptr && value[0] == '1';
}

// Different at any two places that are a power of two apart, so that no wrong cut goes unseen.
unsigned char value(std::size_t i) { return static_cast<unsigned char>((i * 0x9e3779b97f4a7c15ULL) >> 57); }

template <class Collective>
void run_on_two(Collective const& collective, unsigned factor) {
  watched::on_threads(2, [&](auto& comm) {
    collx::transport::zeroed_pages memory(count);
    std::span<unsigned char> const all(reinterpret_cast<unsigned char*>(memory.data()), count);
    for (std::size_t i = 0; i < count; ++i) all[i] = value(i);
    collective(comm, all);
    for (std::size_t i = 0; i < count; ++i)
      if (all[i] != static_cast<unsigned char>(factor * value(i)))
        throw std::runtime_error("wrong at " + std::to_string(i));
  });
}

}  // namespace

TEST_CASE("2^31 + 5 elements, all_reduce" * doctest::skip(!asked_for())) {
  run_on_two([](auto& comm, auto all) { collx::all_reduce(comm, all); }, 2);
}

TEST_CASE("2^31 + 5 elements around a ring" * doctest::skip(!asked_for())) {
  run_on_two([](auto& comm, auto all) { collx::all_reduce<collx::algo::ring>(comm, all, collx::max); }, 1);
}

TEST_CASE("2^31 + 5 elements, broadcast" * doctest::skip(!asked_for())) {
  run_on_two(
      [](auto& comm, auto all) {
        if (comm.rank() == 0) std::fill(all.begin(), all.end(), static_cast<unsigned char>(0));
        collx::broadcast(comm, all, 1);
      },
      1);
}
