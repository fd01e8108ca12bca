// SPDX-License-Identifier: Apache-2.0
// Element types and operators of which the state of a lane, or how it combines, is not that of a sum of
// floats; and an algorithm whose ranks do not all do the same.
#pragma once

#include <string>
#include <vector>

#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "gpu.hpp"

namespace gpu_test {

using namespace collx;

// 12 bytes: no vector of 16 holds a whole number of them.
struct triple {
  int a, b, c;
  friend bool operator==(triple const&, triple const&) = default;
};
// As a user writes one: neither the same as `sum` in any member, nor known to the library.
struct merge {
  COLLX_HD triple operator()(triple const& x, triple const& y) const {
    return {x.a + y.a, x.b > y.b ? x.b : y.b, x.c ^ y.c};
  }
};

// `content(rank, i)`: an element of a rank; `expected(i)`: of the result, on all ranks. Lengths that are no
// multiple of a vector, nor of the ranks: as packets and as letters. By one algorithm, for each kernel takes
// seconds to compile.
template <class T, class Algorithm, class Op, class Content, class Expected>
void try_type(gpu_communicator& gpu, stream const& s, char const* name, Op const& op, Content const& content,
              Expected const& expected) {
  for (std::size_t const count : {std::size_t{5}, std::size_t{4999}}) {
    std::vector<T> mine(count), wanted(count);
    for (std::size_t i = 0; i < count; ++i) mine[i] = content(gpu.rank(), i), wanted[i] = expected(i);
    buffer<T> in(mine), out(mine);
    all_reduce<Algorithm>(gpu, in, out, op, on(s.id));
    gpu.synchronize(on(s.id));
    check(out.content() == wanted, std::string("all_reduce of ") + name);
  }
}

// Numbers of which every partial result is exact.
inline void try_types(gpu_communicator& gpu, stream const& s) {
  auto const n = static_cast<int>(gpu.size());
  auto const of_all = [n](auto const& combine, auto const& content) {
    return [=](std::size_t i) {
      auto total = content(rank_t{0}, i);
      for (int r = 1; r < n; ++r) total = combine(total, content(static_cast<rank_t>(r), i));
      return total;
    };
  };
  auto const eights = [](rank_t r, std::size_t i) {
    return static_cast<bfloat16>(static_cast<float>((i * 7 + static_cast<std::size_t>(r) * 13) % 16 * 8));
  };
  try_type<bfloat16, algo::direct_two_shot>(gpu, s, "bfloat16, avg", avg, eights, [&](std::size_t i) {
    float total = 0;
    for (int r = 0; r < n; ++r) total += static_cast<float>(eights(static_cast<rank_t>(r), i));
    return static_cast<bfloat16>(total / static_cast<float>(n));
  });
  auto const small = [](rank_t r, std::size_t i) {
    return static_cast<float8_e4m3>(static_cast<float>((i + static_cast<std::size_t>(r)) % 2));
  };
  try_type<float8_e4m3, algo::direct_one_shot>(gpu, s, "float8_e4m3", sum, small, [&](std::size_t i) {
    float total = 0;
    for (int r = 0; r < n; ++r) total += static_cast<float>(small(static_cast<rank_t>(r), i));
    return static_cast<float8_e4m3>(total);
  });
  auto const factor = [](rank_t r) { return 0.5f * static_cast<float>(r + 1); };
  auto const whole = [](rank_t r, std::size_t i) {
    return static_cast<float>((i * 3 + static_cast<std::size_t>(r)) % 50);
  };
  try_type<float, algo::direct_two_shot>(
      gpu, s, "float, premultiplied", premultiplied_sum(factor(gpu.rank())), whole,
      of_all([](float a, float b) { return a + b; },
             [=](rank_t r, std::size_t i) { return whole(r, i) * factor(r); }));
  auto const bits = [](rank_t r, std::size_t i) {
    return static_cast<int>((i + 1) * 0x9e3779b9u >> (r % 8));
  };
  try_type<int, algo::ring>(gpu, s, "int, bit_xor", bit_xor, bits,
                            of_all([](int a, int b) { return a ^ b; }, bits));
  auto const three = [=](rank_t r, std::size_t i) {
    return triple{static_cast<int>(i) + r, bits(r, i), bits(r, i + 1)};
  };
  try_type<triple, algo::recursive_doubling>(gpu, s, "structs of 12 bytes", merge{}, three,
                                             of_all(merge{}, three));
  try_type<float, algo::double_binary_tree>(gpu, s, "float, by a tree", sum, whole,
                                            of_all([](float a, float b) { return a + b; }, whole));
}

}  // namespace gpu_test
