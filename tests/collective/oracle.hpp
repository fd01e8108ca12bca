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

// The hardest operator that a schedule promises to combine correctly.
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
  // The combination of the first `size` ranks.
  template <class Op>
  [[nodiscard]] element const* total(rank_t size) const {
    return row(collx::is_commutative<Op>() ? sums_ : compositions_, size - 1);
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

// What one rank passes to one call, and the image of its memory that must be there afterwards:
// results, unchanged inputs, and guards around both.
template <class Contract, class Op>
class participant {
 public:
  // `memory`: room for needed(...) elements, of whatever kind.
  participant(setting const& how, rank_t rank, element* memory) : memory_(memory) {
    std::size_t const inputs = in_count(how, rank), outputs = out_count(how, rank);
    std::size_t const behind_input = how.in_place ? guards : 2 * guards + inputs;
    image_.assign(how.in_place ? 2 * guards + std::max(inputs, outputs) : 3 * guards + inputs + outputs,
                  guard);
    std::size_t in_at = guards, out_at = behind_input;
    auto const r = static_cast<std::size_t>(rank);
    if constexpr (Contract::sharded)
      if (how.in_place) (Contract::from_all ? out_at : in_at) += r * how.count;
    bool const gives = Contract::from_all || !Contract::rooted || rank == how.root;
    copy(image_.data() + in_at, reference::get().input(rank) + how.salt, gives ? inputs : 0);
    std::memcpy(memory_, image_.data(), image_.size() * sizeof(element));
    bool const gets = !Contract::from_all || !Contract::rooted || rank == how.root;
    if (gets) write_result(how, rank, image_.data() + out_at);
    in_ = {memory_ + in_at, inputs};
    out_ = {memory_ + out_at, outputs};
  }

  // The most elements a participant needs.
  static std::size_t needed(rank_t size, std::size_t count) {
    return 3 * guards + (1 + static_cast<std::size_t>(size)) * count;
  }

  [[nodiscard]] std::span<element const> in() const { return in_; }
  [[nodiscard]] std::span<element> out() const { return out_; }

  // Empty, or where memory differs from what must be there.
  [[nodiscard]] std::string difference() const {
    if (std::memcmp(memory_, image_.data(), image_.size() * sizeof(element)) == 0) return {};
    std::size_t i = 0;
    while (memory_[i] == image_[i]) ++i;
    char text[200];
    std::snprintf(
        text, sizeof text, "element %td of the output (%zu elements): is (%u, %u), should be (%u, %u)",
        memory_ + i - out_.data(), out_.size(), memory_[i].a, memory_[i].b, image_[i].a, image_[i].b);
    return text;
  }

 private:
  static constexpr std::size_t guards = 8;
  static constexpr element guard{0xdeadbeef, 0xfeedface};

  static std::size_t in_count(setting const& how, rank_t rank) {
    if (Contract::from_all && Contract::sharded) return how.count * static_cast<std::size_t>(how.size);
    // Only a broadcast's root needs an input.
    if (Contract::rooted && !Contract::from_all && rank != how.root && !how.in_place) return 0;
    return how.count;
  }
  static std::size_t out_count(setting const& how, rank_t rank) {
    if (!Contract::from_all && Contract::sharded) return how.count * static_cast<std::size_t>(how.size);
    if (Contract::rooted && Contract::from_all && rank != how.root && !how.in_place) return 0;
    return how.count;
  }

  static void copy(element* to, element const* from, std::size_t count) {
    if (count != 0) std::memcpy(to, from, count * sizeof(element));
  }

  static void write_result(setting const& how, rank_t rank, element* out) {
    reference const& all = reference::get();
    if constexpr (Contract::from_all) {
      std::size_t const skipped = Contract::sharded ? static_cast<std::size_t>(rank) * how.count : 0;
      copy(out, all.total<Op>(how.size) + how.salt + skipped, how.count);
    } else if constexpr (Contract::rooted) {
      copy(out, all.input(how.root) + how.salt, how.count);
    } else {
      for (rank_t r = 0; r < how.size; ++r)
        copy(out + static_cast<std::size_t>(r) * how.count, all.input(r) + how.salt, how.count);
    }
  }

  element* memory_;
  std::vector<element> image_;
  std::span<element const> in_;
  std::span<element> out_;
};

}  // namespace oracle
