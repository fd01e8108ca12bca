// SPDX-License-Identifier: Apache-2.0
// A buffer of blocks that have counts of their own, one for each rank: what the _v collectives take and
// give, and what is checked of them.
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

// Block r has counts[r] elements and begins at data[offsets[r]]; without offsets blocks follow each other.
// All three belong to the caller and stay as they are until the call, or the request, is done. `Stay`: none
// of them is a temporary that ends with the statement, as far as blocks{...} can see.
template <class T, bool Stay = true>
struct blocks {
  static constexpr bool buffers_stay = Stay;
  using list = std::span<std::size_t const>;

  std::span<T> data;
  list counts;
  list offsets{};

  constexpr blocks() = default;
  template <buffer_like Data>
  constexpr blocks(Data&& memory, list each) : data(memory.data(), memory.size()), counts(each) {}
  template <buffer_like Data>
  constexpr blocks(Data&& memory, list each, list begins)
      : data(memory.data(), memory.size()), counts(each), offsets(begins) {}
  // What would be told by a list of constructors that do not fit.
  template <buffer_like Data, class... Lists>
    requires(!(std::convertible_to<Lists, list> && ...))
  constexpr blocks(Data&&, Lists&&...) {
    static_assert((std::convertible_to<Lists, list> && ...),
                  "collx: counts and offsets are lists of std::size_t, such as std::vector<std::size_t>; "
                  "those of int, as MPI has them, need copying");
  }
};

// Not to be started with.
template <class T>
struct blocks<T, false> : blocks<T, true> {
  static constexpr bool buffers_stay = false;
  using blocks<T, true>::blocks;
};

template <class Data, class... Lists>
blocks(Data&& memory, Lists&&...)
    -> blocks<std::remove_pointer_t<decltype(memory.data())>, detail::are_no_temporaries<Data, Lists...>>;

namespace detail {

inline constexpr char const* null_blocks = "the memory of the blocks is null, and one of them has elements";

// Whether the blocks lie apart and in the buffer: with offsets in any order, hence the second loop, which
// ascending offsets make short.
template <class T, class Invocation>
void check_blocks(Invocation& args, blocks<T> const& b, rank_t size, char const* one_per_rank,
                  char const* in_buffer, char const* apart) noexcept {
  auto const ranks = static_cast<std::size_t>(size);
  args.require_count(one_per_rank, b.counts.size(), ranks);
  if (!b.offsets.empty()) args.require_count(one_per_rank, b.offsets.size(), ranks);
  args.refuse_if_absurd(b.data.size());
  if (args.fault != nullptr) return;
  std::size_t end = 0;
  bool ascending = true;
  for (std::size_t r = 0; r < ranks; ++r) {
    std::size_t const begin = b.offsets.empty() ? end : b.offsets[r];
    // Written so that no sum can overflow.
    if (begin > b.data.size() || b.counts[r] > b.data.size() - begin)
      return args.refuse(in_buffer, begin > ~b.counts[r] ? SIZE_MAX : begin + b.counts[r], b.data.size());
    if (b.counts[r] == 0) continue;
    if (b.data.data() == nullptr) return args.refuse(null_blocks, std::size_t{0}, b.counts[r]);
    ascending = ascending && begin >= end;
    end = begin + b.counts[r];
  }
  for (std::size_t r = 0; !ascending && r < ranks; ++r)
    for (std::size_t other = 0; other < r; ++other)
      if (b.counts[r] != 0 && b.counts[other] != 0 && b.offsets[r] < b.offsets[other] + b.counts[other] &&
          b.offsets[other] < b.offsets[r] + b.counts[r])
        return args.refuse(apart, r, other);
}

template <class T>
[[nodiscard]] std::size_t offset_of(blocks<T> const& b, rank_t rank) noexcept {
  auto const at = static_cast<std::size_t>(rank);
  if (at < b.offsets.size()) return b.offsets[at];
  std::size_t begin = 0;
  for (std::size_t r = 0; r < at && r < b.counts.size(); ++r) begin += b.counts[r];
  return begin;
}

// The largest of some counts, by which fragments are cut.
[[nodiscard]] inline std::size_t largest_of(std::span<std::size_t const> counts) noexcept {
  std::size_t largest = 0;
  for (std::size_t const count : counts) largest = count > largest ? count : largest;
  return largest;
}

template <class T>
[[nodiscard]] uneven_buffer table_of(blocks<T> const& b) noexcept {
  return {b.counts.data(), b.offsets.empty() ? nullptr : b.offsets.data(), true};
}

// The one block of a rank that is told apart from the others: everybody's counts are known.
[[nodiscard]] inline uneven_buffer own_block(std::span<std::size_t const> counts) noexcept {
  return {counts.data(), nullptr, false};
}

}  // namespace detail
}  // namespace collx::inline abi_1
