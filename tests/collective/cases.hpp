// SPDX-License-Identifier: Apache-2.0
// The cases of the matrix: which counts, roots and buffers every schedule is run with.
#pragma once

#include <algorithm>
#include <vector>

#include "collective/oracle.hpp"

namespace cases {

using collx::rank_t;

// Half of it is what a fragment may stage, so that a few thousand elements take several fragments.
inline constexpr std::size_t staging_bytes = 64 * 1024;

// As large as makes several fragments of any schedule, and within the reference.
inline std::size_t large_count(oracle::collective const& what, rank_t size) {
  return what.sharded ? 9001 / static_cast<std::size_t>(size) + 497 : 10007;
}
template <class Contract>
std::size_t large_count(rank_t size) {
  return large_count(oracle::collective_of<Contract>, size);
}

// The most elements of memory that any of the cases takes, on one rank.
inline std::size_t memory_count(rank_t size) {
  auto const room = [&](oracle::collective const& of) {
    return oracle::participant::needed(of, size, large_count(of, size));
  };
  return std::max(room(oracle::collective_of<collx::contract::all_to_all>),
                  room(oracle::collective_of<collx::contract::all_reduce>));
}

inline std::vector<std::size_t> counts(oracle::collective const& what, rank_t size) {
  auto const n = static_cast<std::size_t>(size);
  std::vector<std::size_t> all{0, 1, n - 1, n, n + 1, 61, large_count(what, size)};
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

inline std::vector<rank_t> roots(oracle::collective const& what, rank_t size) {
  if (!what.rooted) return {0};
  std::vector<rank_t> all;
  for (rank_t r = 0; r < size; ++r)
    if (size <= 5 || r == 0 || r == size / 2 || r == size - 1) all.push_back(r);
  return all;
}

// Calls f(setting) for every case of a contract. Each has data of its own.
template <class F>
void for_each(oracle::collective const& what, rank_t size, F const& f) {
  std::size_t number = 0;
  for (std::size_t const count : counts(what, size))
    for (rank_t const root : roots(what, size))
      for (bool const in_place : {false, true})
        f(oracle::setting{size, count, in_place, root, ++number % 512});
}

// Which of them to walk: one in `every`, and with another `first` others.
struct some {
  std::size_t every = 1, first = 0;
  bool operator()(oracle::setting const& how) const {
    return how.salt % every == (first + 1) % every;  // salts begin with 1
  }
};

inline std::string describe(char const* collective, char const* algorithm, oracle::setting const& how) {
  char text[200];
  std::snprintf(text, sizeof text, "%s<%s>, %d ranks, count %zu, root %d, %s", collective, algorithm,
                how.size, how.count, how.root, how.in_place ? "in place" : "separate buffers");
  return text;
}

}  // namespace cases
