// SPDX-License-Identifier: Apache-2.0
// What every collective must leave in every rank's memory, computed one rank after the other: the
// reference of the tests. Knows nothing of schedules, executors or transports.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "collx/collective/contract.hpp"
#include "collx/core/random.hpp"
#include "collx/op/reduction.hpp"
#include "collx/schedule/concept.hpp"

namespace oracle {

using collx::rank_t;

// The function x -> a x + b modulo 2^32. Applying one after the other is associative, exact and not
// commutative: a contribution that is missing, doubled or out of rank order changes the result.
struct element {
  std::uint32_t a = 0, b = 0;
  friend bool operator==(element const&, element const&) = default;
};

// f, then g.
inline constexpr auto apply_in_order = [](element const& f, element const& g) {
  return element{g.a * f.a, g.a * f.b + g.b};
};
inline constexpr auto add = [](element const& f, element const& g) { return element{f.a + g.a, f.b + g.b}; };

// The hardest operator that a schedule promises to combine correctly: one that is not commutative, where it
// keeps the order of ranks.
template <class Schedule>
constexpr auto operator_for() {
  if constexpr (collx::keeps_rank_order<Schedule>()) return collx::ordered(apply_in_order);
  else return add;
}

// Inputs of every rank, and their combinations over ranks 0 .. n-1 for every n, computed once.
class reference {
 public:
  static constexpr rank_t size_max = 33;
  static constexpr std::size_t index_count = 32 * 1024;

  static reference const& get() {
    static reference const all;
    return all;
  }

  [[nodiscard]] element const* input(rank_t rank) const { return row(inputs_, rank); }
  // The combination of the first `size` ranks: their sum, or their functions applied in rank order.
  [[nodiscard]] element const* total(rank_t size, bool in_order) const {
    return row(in_order ? compositions_ : sums_, size - 1);
  }

 private:
  reference() : inputs_(rows()), sums_(rows()), compositions_(rows()) {
    collx::replayable_random random(7);
    for (element& e : inputs_)
      e = {static_cast<std::uint32_t>(random.next()) | 1, static_cast<std::uint32_t>(random.next())};
    sums_ = compositions_ = inputs_;
    for (std::size_t i = index_count; i < rows(); ++i) {
      sums_[i] = add(sums_[i - index_count], inputs_[i]);
      compositions_[i] = apply_in_order(compositions_[i - index_count], inputs_[i]);
    }
  }

  static constexpr std::size_t rows() { return index_count * static_cast<std::size_t>(size_max); }
  static element const* row(std::vector<element> const& of, rank_t i) {
    return of.data() + static_cast<std::size_t>(i) * index_count;
  }

  std::vector<element> inputs_, sums_, compositions_;
};

// One call of a collective, the same on every rank.
struct setting {
  rank_t size = 1;
  std::size_t count = 0;  // as the contract counts: per rank where it is sharded
  bool in_place = false;
  rank_t root = 0;
  std::size_t salt = 0;  // where in the reference the data begin: no two calls move the same bytes
};

// A contract as values: what is asked of it here is compiled once, not for every one.
struct collective {
  char const* name;
  bool from_all, rooted, sharded;
  collx::block_window (*input)(collx::problem);
  collx::block_window (*output)(collx::problem);
  std::int32_t (*in_place_at)(collx::problem);
  rank_t (*contributors)(collx::problem);
  rank_t (*owner)(collx::problem, std::int32_t block);
};

template <class Contract>
inline constexpr collective collective_of{Contract::name,         Contract::from_all,      Contract::rooted,
                                          Contract::sharded,      &Contract::input,        &Contract::output,
                                          &Contract::in_place_at, &Contract::contributors, &Contract::owner};

// What one rank passes to one call, and the image of its memory that must be there afterwards:
// results, unchanged inputs, and guards around both.
class participant {
 public:
  // `in_order`: how contributions are combined (reference::total). `memory`: room for needed(...) elements,
  // of whatever kind.
  participant(collective const& what, bool in_order, setting const& how, rank_t rank, element* memory)
      : what_(&what), in_order_(in_order), memory_(memory) {
    collx::problem const p{rank, how.size, how.root};
    collx::block_window const given = what.input(p), gotten = what.output(p);
    std::size_t const inputs = static_cast<std::size_t>(given.count) * how.count;
    std::size_t const outputs = static_cast<std::size_t>(gotten.count) * how.count;
    // Where a rank gets nothing it may pass a buffer all the same: it stays as it is.
    std::size_t const passed = !what.sharded && (how.in_place || !what.rooted) ? how.count : outputs;
    std::size_t const behind_input = how.in_place ? guards : 2 * guards + inputs;
    std::size_t const elements =
        how.in_place ? 2 * guards + std::max(inputs, passed) : 3 * guards + inputs + passed;
    image_.assign(elements * sizeof(element), guard);
    std::size_t in_at = guards, out_at = behind_input;
    if (how.in_place && inputs != outputs && inputs != 0 && outputs != 0)
      (inputs < outputs ? in_at : out_at) += static_cast<std::size_t>(what.in_place_at(p)) * how.count;
    for_each_block(given, [&](std::int32_t block, std::size_t at) {
      copy(image() + in_at + at * how.count, content(how, p, block), how.count);
    });
    std::memcpy(memory_, image_.data(), image_.size());
    for_each_block(gotten, [&](std::int32_t block, std::size_t at) {
      copy(image() + out_at + at * how.count, result(how, p, block), how.count);
    });
    in_ = {memory_ + in_at, inputs};
    out_ = {memory_ + out_at, passed};
  }

  // The most elements a participant needs.
  static std::size_t needed(collective const& what, rank_t size, std::size_t count) {
    return 3 * guards + 2 * (what.sharded ? static_cast<std::size_t>(size) : 1) * count;
  }

  [[nodiscard]] std::span<element const> in() const { return in_; }
  [[nodiscard]] std::span<element> out() const { return out_; }

  // Empty, or where memory differs from what must be there.
  [[nodiscard]] std::string difference() const {
    if (std::memcmp(memory_, image_.data(), image_.size()) == 0) return {};
    std::size_t i = 0;
    element const* const should = image();
    while (memory_[i] == should[i]) ++i;
    char text[200];
    std::snprintf(
        text, sizeof text, "element %td of the output (%zu elements): is (%u, %u), should be (%u, %u)",
        memory_ + i - out_.data(), out_.size(), memory_[i].a, memory_[i].b, should[i].a, should[i].b);
    return text;
  }

 private:
  static constexpr std::size_t guards = 8;
  static constexpr std::byte guard{0xd7};

  [[nodiscard]] element* image() { return reinterpret_cast<element*>(image_.data()); }
  [[nodiscard]] element const* image() const { return reinterpret_cast<element const*>(image_.data()); }

  template <class F>
  static void for_each_block(collx::block_window const& window, F const& f) {
    for (std::int32_t i = 0; i < window.count; ++i)
      f(window.first + i * window.stride, static_cast<std::size_t>(i));
  }

  static void copy(element* to, element const* from, std::size_t count) {
    if (count != 0) std::memcpy(to, from, count * sizeof(element));
  }

  // Where in the reference a block's data begin.
  static std::size_t begin(setting const& how, std::int32_t block) {
    return how.salt + static_cast<std::size_t>(block % how.size) * how.count;
  }

  // What a rank puts into a block.
  [[nodiscard]] element const* content(setting const& how, collx::problem const& p,
                                       std::int32_t block) const {
    rank_t const giver = what_->from_all ? p.rank : what_->owner(p, block);
    return reference::get().input(giver) + begin(how, block);
  }

  // What a rank must find in it.
  [[nodiscard]] element const* result(setting const& how, collx::problem const& p, std::int32_t block) const {
    if (!what_->from_all) return content(how, p, block);
    return reference::get().total(what_->contributors(p), in_order_) + begin(how, block);
  }

  collective const* what_;
  bool in_order_;
  element* memory_;
  std::vector<std::byte> image_;  // of elements, which take long to make one by one
  std::span<element const> in_;
  std::span<element> out_;
};

}  // namespace oracle
