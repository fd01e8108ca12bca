// SPDX-License-Identifier: Apache-2.0
// A schedule as a part of a larger one: its ranks are some of the ranks (an axis), its vector is a part
// of the vector, its buffers lie where the larger schedule says. What combinators are made of.
#pragma once

#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1 {

// Where the chunks of one place of the small schedule lie. Chunk c of it is, in the larger one,
//
//   base + (c - shift) / divisor * spacing,   and `unit` chunks from there on,
//
// `repeat` times, `pitch` apart. `chunks`: how many chunks the small vector has. The defaults are
// those of a schedule whose chunks are the chunks.
struct placement {
  place where = place::input;
  std::int32_t chunks = 0;
  std::int32_t unit = 1;
  std::int32_t spacing = 1;
  std::int32_t base = 0;
  std::int32_t shift = 0;
  std::int32_t divisor = 1;
  std::int32_t repeat = 1;
  std::int32_t pitch = 0;
};

// The chunks of the small vector follow each other in the large one, each `unit` chunks long.
[[nodiscard]] COLLX_HD constexpr placement placed(place where, std::int32_t chunks, std::int32_t unit,
                                                  std::int32_t base = 0) {
  return {where, chunks, unit, unit, base};
}

// A region that can be described neither way is made one that no buffer has: the proof refuses it.
[[nodiscard]] COLLX_HD constexpr region embed(region const& r, placement const& in) {
  std::int32_t const modulus = r.modulus == 0 ? in.chunks : r.modulus;
  // One of the terms holds the shift: `base` where the region wraps in a part, else `first`.
  bool const in_base = r.base >= in.shift && r.base != 0;
  std::int32_t const first = in_base ? r.first : r.first - in.shift;
  std::int32_t const base = in_base ? r.base - in.shift : r.base;
  region result{.where = in.where,
                .first = first / in.divisor * in.spacing,
                .count = r.count * in.unit * in.repeat,
                .per_peer = r.per_peer / in.divisor * in.spacing,
                .base = in.base + base / in.divisor * in.spacing,
                .modulus = modulus / in.divisor * in.spacing,
                .wraps = r.wraps && r.count > 1};
  bool const close = in.spacing == in.unit && in.divisor == 1;
  if (r.count <= 1) {
    if (in.repeat > 1) result.run = in.unit, result.pitch = in.pitch;
  } else if (in.repeat > 1) {
    if (!r.is_one_run() || !close) result.count = -1;
    result.run = r.count * in.unit;
    result.pitch = in.pitch;
  } else if (r.run == 0 || r.count <= r.run) {
    if (in.divisor != 1) result.count = -1;
    if (!close) result.run = in.unit, result.pitch = in.spacing;
  } else {
    if (!close && (r.run != 1 || in.divisor != 1)) result.count = -1;
    result.run = r.run * in.unit;
    result.pitch = r.pitch * in.spacing;
  }
  return result;
}

// How a schedule lies in a larger one.
struct embedding {
  axis along{};
  placement input{}, output{place::output}, scratch{place::scratch};
  // What an unstored result is a part of: only its length matters.
  placement unstored{place::output};

  [[nodiscard]] COLLX_HD constexpr placement const& of(place where) const {
    return where == place::input ? input : where == place::output ? output : scratch;
  }
};

[[nodiscard]] COLLX_HD constexpr primitive embed(primitive step, embedding const& in) {
  // A part of one rank may combine its own vector with nobody's: among more ranks that is a copy.
  if (step.reduce && step.from.count == 1) {
    step.from = nobody();
    step.reduce = step.complete = false;
  }
  step.from.along = embed(step.from.along, in.along);
  step.to.along = embed(step.to.along, in.along);
  step.operand = embed(step.operand, in.of(step.operand.where));
  step.target = embed(step.target, step.store ? in.of(step.target.where) : in.unstored);
  return step;
}

namespace detail {

[[nodiscard]] COLLX_HD constexpr std::int32_t common_multiple(std::int32_t a, std::int32_t b) {
  std::int32_t x = a, y = b;
  while (y != 0) {
    std::int32_t const rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

[[nodiscard]] COLLX_HD constexpr std::int32_t larger(std::int32_t a, std::int32_t b) { return a > b ? a : b; }

}  // namespace detail
}  // namespace collx::inline abi_1
