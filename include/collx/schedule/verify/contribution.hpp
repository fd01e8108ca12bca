// SPDX-License-Identifier: Apache-2.0
// The values of the symbolic run: not numbers, but what they are made of. A value is one chunk
// number and the set of ranks whose contributions to that chunk were combined in it.
#pragma once

#include "collx/schedule/verify/fault.hpp"
#include "collx/schedule/verify/table.hpp"

namespace collx::inline abi_1::detail {

// Values are named by integers. `undefined` is memory that nobody wrote. The numbers from 0 are
// the users' inputs, rank * chunks + chunk; combined values are numbered behind them. Values never
// change, so a copy of a chunk is a copy of its number.
inline constexpr std::int32_t undefined = -1;

class contributions {
 public:
  constexpr contributions(rank_t size, std::int32_t chunks)
      : chunks_(chunks), inputs_(size * chunks), words_((size + 63) / 64) {}

  [[nodiscard]] constexpr std::int32_t input(rank_t rank, std::int32_t chunk) const {
    return rank * chunks_ + chunk;
  }

  [[nodiscard]] constexpr std::int32_t chunk_of(std::int32_t value) const {
    return value < inputs_ ? value % chunks_ : combined_[value - inputs_].chunk;
  }

  // The number of contributions in a value; each is in it once, combine() sees to that.
  [[nodiscard]] constexpr std::int32_t count(std::int32_t value) const {
    return value < inputs_ ? 1 : combined_[value - inputs_].count;
  }

  [[nodiscard]] constexpr bool has(std::int32_t value, rank_t rank) const {
    if (value < inputs_) return value / chunks_ == rank;
    return (word(value, rank / 64) >> (rank % 64) & 1) != 0;
  }

  // A new value that holds what `value` holds, to be extended by add().
  [[nodiscard]] constexpr std::int32_t begin(std::int32_t value) {
    summary const copy = summarise(value);
    std::int32_t const result = inputs_ + combined_.push(copy);
    for (std::int32_t w = 0; w < words_; ++w) members_.push(word(value, w));
    return result;
  }

  // result = result (+) value, where `result` is the newest value.
  [[nodiscard]] constexpr fault add(std::int32_t result, std::int32_t value) {
    summary& sum = combined_[result - inputs_];
    summary const more = summarise(value);
    if (sum.chunk != more.chunk) return fault::different_chunks;
    for (std::int32_t w = 0; w < words_; ++w) {
      std::uint64_t const bits = word(value, w);
      std::uint64_t& mine = members_[std::int64_t{result - inputs_} * words_ + w];
      if ((mine & bits) != 0) return fault::combined_twice;
      mine |= bits;
    }
    // The sequence of ranks is ascending iff both parts are and the first ends before the second
    // begins. A part that is out of order can never become part of an ascending one.
    sum.ascending = sum.ascending && more.ascending && sum.last < more.first;
    sum.first = sum.first < more.first ? sum.first : more.first;
    sum.last = sum.last > more.last ? sum.last : more.last;
    sum.count += more.count;
    sum.tree = joined(sum.tree, more.tree);
    return fault::none;
  }

  // The newest value is complete. Where a pass ends it is rounded to the element type: whether a sum of
  // three is made in one pass or in two can show.
  constexpr void end(std::int32_t result) {
    summary& sum = combined_[result - inputs_];
    sum.tree = joined(sum.tree, sum.tree);
  }

  // A number for the expression that a value is: operands, their order, brackets and passes, not the chunk.
  [[nodiscard]] constexpr std::uint64_t tree(std::int32_t value) const { return summarise(value).tree; }

  [[nodiscard]] constexpr bool ascending(std::int32_t value) const {
    return value < inputs_ || combined_[value - inputs_].ascending;
  }

 private:
  struct summary {
    std::int32_t chunk = 0;
    std::int32_t count = 0;
    rank_t first = 0;
    rank_t last = 0;
    bool ascending = true;
    std::uint64_t tree = 0;
  };

  [[nodiscard]] static constexpr std::uint64_t joined(std::uint64_t left, std::uint64_t right) {
    std::uint64_t const mixed = left * 0x9e3779b97f4a7c15U + right;
    return (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9U;
  }

  [[nodiscard]] constexpr summary summarise(std::int32_t value) const {
    if (value >= inputs_) return combined_[value - inputs_];
    rank_t const rank = value / chunks_;
    return {value % chunks_, 1, rank, rank, true, static_cast<std::uint64_t>(rank) + 1};
  }

  [[nodiscard]] constexpr std::uint64_t word(std::int32_t value, std::int32_t index) const {
    if (value >= inputs_) return members_[std::int64_t{value - inputs_} * words_ + index];
    rank_t const rank = value / chunks_;
    return rank / 64 == index ? std::uint64_t{1} << (rank % 64) : 0;
  }

  std::int32_t chunks_;
  std::int32_t inputs_;
  std::int32_t words_;
  table<summary> combined_;
  table<std::uint64_t> members_;
};

}  // namespace collx::inline abi_1::detail
