// SPDX-License-Identifier: Apache-2.0
// One call of any_communicator, and what it must leave in a rank's memory: computed with arithmetic of its
// own, one rank after the other, for every collective, element type and operator. All data are exact:
// whatever the order in which ranks are combined, no result is rounded before its last step.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "collx/any/call.hpp"
#include "collx/any/reductions.hpp"
#include "collx/core/random.hpp"

namespace any_reference {

using collx::any_call;
using collx::collective_kind;
using collx::data_type;
using collx::rank_t;
using collx::reduce_op;

// What a collective takes and gives: one block, or one for (of) every rank.
struct shape {
  bool combines, gives_all, takes_all, rooted, uneven;
};

inline shape shape_of(collective_kind what) {
  switch (what) {
    case collective_kind::all_reduce:
    case collective_kind::scan:
    case collective_kind::exclusive_scan: return {true, false, false, false, false};
    case collective_kind::reduce: return {true, false, false, true, false};
    case collective_kind::reduce_scatter: return {true, true, false, false, false};
    case collective_kind::reduce_scatter_v: return {true, true, false, false, true};
    case collective_kind::all_gather: return {false, false, true, false, false};
    case collective_kind::all_gather_v: return {false, false, true, false, true};
    case collective_kind::all_to_all: return {false, true, true, false, false};
    case collective_kind::all_to_all_v: return {false, true, true, false, true};
    case collective_kind::gather: return {false, false, true, true, false};
    case collective_kind::gather_v: return {false, false, true, true, true};
    case collective_kind::scatter: return {false, true, false, true, false};
    case collective_kind::scatter_v: return {false, true, false, true, true};
    case collective_kind::broadcast: return {false, false, false, true, false};
    case collective_kind::barrier: break;
  }
  return {false, false, false, false, false};
}

// A call, the same on every rank.
struct scenario {
  collective_kind what;
  data_type type;
  reduce_op op;
  char const* algorithm;
  std::size_t count;  // of a block; uneven ones have none, one to two of these
  rank_t size, root;
  bool in_place, apart;  // apart: uneven blocks with gaps, the last rank's first
  std::uint32_t salt;    // no two calls move the same bytes

  [[nodiscard]] std::string describe(rank_t rank) const {
    static constexpr char const* names[] = {
        "all_reduce",       "reduce_scatter", "all_gather", "all_to_all",     "broadcast", "reduce",
        "gather",           "scatter",        "scan",       "exclusive_scan", "barrier",   "all_gather_v",
        "reduce_scatter_v", "all_to_all_v",   "gather_v",   "scatter_v"};
    static_assert(std::size(names) == collx::collective_kind_count);
    return std::string(names[static_cast<std::size_t>(what)]) + "<" + algorithm + "> of " + name(type) +
           (shape_of(what).combines ? std::string(" with ") + name(op) : std::string()) + ", count " +
           std::to_string(count) + ", root " + std::to_string(root) + (in_place ? ", in place" : "") +
           (apart ? ", blocks apart" : "") + ", rank " + std::to_string(rank) + " of " + std::to_string(size);
  }
};

// Whether an operator has a meaning for a type: bits are integers'.
inline bool applies(reduce_op op, data_type type) {
  bool const of_bits = op == reduce_op::bit_and || op == reduce_op::bit_or || op == reduce_op::bit_xor;
  return !of_bits || type < data_type::float8_e4m3;
}

inline std::uint32_t mixed(std::uint32_t salt, rank_t from, rank_t to, std::size_t i) {
  std::uint64_t x = salt * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(from) * 0xbf58476d1ce4e5b9u +
                    static_cast<std::uint64_t>(to) * 0x94d049bb133111ebu + i * 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return static_cast<std::uint32_t>(x >> 32);
}

// Every bit may be set.
template <class T>
T any_bits(std::uint32_t h) {
  std::uint64_t const wide = h * 0x9e3779b97f4a7c15u + h;
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &wide, sizeof(T));
  return std::bit_cast<T>(bytes);
}

template <class T>
using computed_t = std::conditional_t<collx::is_small_float<T>, float, T>;

// What a rank contributes: such that the combination of up to 33 ranks is exact in T. Those of eight bits
// hold whole numbers up to 8 (float8_e5m2), and powers of two up to 256 (float8_e4m3).
template <class T>
T contribution(reduce_op op, std::uint32_t h, rank_t from, rank_t size, std::size_t i) {
  std::size_t const apart = size <= 17 ? 3 : 6;
  bool const one_of_few = (static_cast<std::size_t>(from) + i) % apart == 0;
  auto const small = [](int v) { return static_cast<T>(static_cast<computed_t<T>>(v)); };
  constexpr bool has_sign = !std::is_unsigned_v<T>;
  switch (op) {
    case reduce_op::sum:
    case reduce_op::avg:
      if (sizeof(T) == 1 && !std::is_integral_v<T>)
        return small(one_of_few ? 1 - 2 * static_cast<int>(h % 2) : 0);
      return small(static_cast<int>(h % 7) - (has_sign ? 3 : 0));
    case reduce_op::prod: return small((one_of_few ? 2 : 1) * (has_sign && h % 2 == 0 ? -1 : 1));
    case reduce_op::logical_and:
    case reduce_op::logical_or: return small((h % 16 == 0) == (i % 2 == 0) ? 0 : 1 + static_cast<int>(h % 3));
    default: break;
  }
  if constexpr (std::is_integral_v<T>) return any_bits<T>(h);
  return small(static_cast<int>(h % 17) - 8);
}

template <class T>
T combined(reduce_op op, T first, T second) {
  using C = computed_t<T>;
  C const a = static_cast<C>(first), b = static_cast<C>(second);
  auto const back = [](auto v) { return static_cast<T>(static_cast<C>(v)); };
  switch (op) {
    case reduce_op::sum:
    case reduce_op::avg: return back(a + b);
    case reduce_op::prod: return back(a * b);
    case reduce_op::min: return b < a ? second : first;
    case reduce_op::max: return a < b ? second : first;
    case reduce_op::logical_and: return back(a != C(0) && b != C(0) ? 1 : 0);
    case reduce_op::logical_or: return back(a != C(0) || b != C(0) ? 1 : 0);
    default: break;
  }
  if constexpr (std::is_integral_v<T>)
    return back(op == reduce_op::bit_and ? a & b : op == reduce_op::bit_or ? a | b : a ^ b);
  return first;
}

// Of a rank's buffer: where its blocks are, in elements.
struct layout {
  std::vector<std::size_t> counts, offsets;
  std::size_t extent = 0;

  void append(std::size_t count) {
    counts.push_back(count);
    offsets.push_back(extent);
    extent += count;
  }
  // The last block first, with gaps.
  void spread() {
    extent = 1;
    for (std::size_t r = counts.size(); r-- > 0;) {
      offsets[r] = extent;
      extent += counts[r] + 3;
    }
  }
};

// One rank's memory for one call: inputs, outputs and guards around them, and the image that must be there
// afterwards.
class participant {
 public:
  participant(scenario const& how, rank_t rank) : how_(how), me_(rank), is_(shape_of(how.what)) {
    if (takes_part_in(has_input())) lay_out(in_, is_.gives_all, true);
    if (takes_part_in(has_output())) lay_out(out_, is_.takes_all, false);
    place();
    std::size_t at = 0;
    collx::any_types::for_each([&]<class T>() {
      if (at++ == static_cast<std::size_t>(how_.type)) fill<T>();
    });
  }

  // Where it lies, if not in memory of its own: in bytes() of the caller's, from now on.
  [[nodiscard]] std::size_t bytes() const { return before_.size(); }
  void lie_at(std::byte* place) {
    place_ = place;
    restore();
  }

  [[nodiscard]] any_call call() {
    std::byte* const base = memory();
    any_call c;
    c.what = how_.what;
    c.in = base + in_at_;
    c.out = base + out_at_;
    c.count = how_.count;
    c.type = how_.type;
    c.op = how_.op;
    c.root = how_.root;
    c.options.algorithm = how_.algorithm;
    if (!is_.uneven) return c;
    c.count = is_.gives_all ? (out_.counts.empty() ? 0 : out_.counts[0]) : in_.counts[0];
    if (is_.gives_all && is_.takes_all) c.count = 0;
    if (is_.gives_all) c.in_blocks = list(in_);
    if (is_.takes_all) c.out_blocks = list(out_);
    return c;
  }

  void restore() { std::memcpy(memory(), before_.data(), before_.size()); }
  // Empty, or the first byte that differs.
  [[nodiscard]] std::string difference() const {
    std::byte const* const memory = place_ != nullptr ? place_ : memory_.data();
    if (std::memcmp(memory, image_.data(), image_.size()) == 0) return {};
    std::size_t i = 0;
    while (memory[i] == image_[i]) ++i;
    return "byte " + std::to_string(static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(out_at_)) +
           " of the output is " + std::to_string(static_cast<int>(memory[i])) + ", should be " +
           std::to_string(static_cast<int>(image_[i]));
  }

 private:
  static constexpr std::size_t guard_bytes = 64;

  [[nodiscard]] std::byte* memory() { return place_ != nullptr ? place_ : memory_.data(); }
  [[nodiscard]] bool is_root() const { return me_ == how_.root; }
  // Rooted collectives move from the root or to it.
  [[nodiscard]] bool from_root() const { return is_.rooted && !is_.takes_all && !is_.combines; }
  [[nodiscard]] bool has_input() const { return !from_root() || is_root(); }
  [[nodiscard]] bool has_output() const { return !is_.rooted || from_root() || is_root(); }
  [[nodiscard]] bool takes_part_in(bool has) const { return has && how_.what != collective_kind::barrier; }

  // Elements that go from one rank to another; what depends on one of them only is asked with 0 for the
  // other.
  [[nodiscard]] std::size_t count(rank_t from, rank_t to) const {
    if (!is_.uneven) return how_.count;
    if (!is_.gives_all || from_root()) (is_.gives_all ? from : to) = 0;
    if (is_.combines) from = 0;
    std::size_t const each[] = {how_.count, 0, how_.count / 2 + 1, 2 * how_.count};
    return each[(static_cast<std::uint32_t>(from * 3 + to * 5) + how_.salt) % 4];
  }
  void lay_out(layout& l, bool all, bool mine_first) {
    for (rank_t r = 0; r < (all ? how_.size : 1); ++r) {
      rank_t const from = mine_first ? me_ : is_.takes_all ? r : 0, to = mine_first ? r : me_;
      l.append(count(from, to));
    }
    if (all && is_.uneven && how_.apart) l.spread();
  }
  [[nodiscard]] collx::block_list list(layout const& l) const {
    if (!how_.apart) return {l.counts, {}};
    return {l.counts, l.offsets};
  }

  // Where both buffers are. In place, the smaller one lies in the other.
  void place() {
    std::size_t const bytes = bytes_of(how_.type), ins = in_.extent * bytes, outs = out_.extent * bytes;
    std::size_t const line = 16;
    bool const shares = how_.in_place && !in_.counts.empty() && !out_.counts.empty() &&
                        !(is_.uneven && is_.gives_all && is_.takes_all);
    in_at_ = guard_bytes;
    out_at_ = shares ? guard_bytes : (2 * guard_bytes + ins + line - 1) / line * line;
    auto const own = static_cast<std::size_t>(me_);
    if (shares && is_.gives_all && !is_.takes_all) out_at_ += in_.offsets[own] * bytes;
    if (shares && is_.takes_all && !is_.gives_all) in_at_ += out_.offsets[own] * bytes;
    // Where a rank gets nothing it may pass a buffer all the same: it stays as it is.
    std::size_t const passed = outs != 0 ? outs : how_.count * bytes;
    if (how_.in_place && out_.counts.empty()) out_at_ = in_at_;
    std::size_t const end_in = in_at_ + ins, end_out = out_at_ + passed;
    before_.assign((end_in > end_out ? end_in : end_out) + guard_bytes, std::byte{0xa5});
  }

  template <class T>
  [[nodiscard]] T given(rank_t from, rank_t to, std::size_t i) const {
    if (!is_.gives_all) to = 0;
    std::uint32_t const h = mixed(how_.salt, from, to, i);
    return is_.combines ? contribution<T>(how_.op, h, from, how_.size, i) : any_bits<T>(h);
  }
  template <class T>
  [[nodiscard]] T gotten(std::size_t block, std::size_t i) const {
    if (!is_.combines) return given<T>(is_.takes_all ? static_cast<rank_t>(block) : how_.root, me_, i);
    rank_t const end = how_.what == collective_kind::scan             ? me_ + 1
                       : how_.what == collective_kind::exclusive_scan ? me_
                                                                      : how_.size;
    T total = given<T>(0, me_, i);
    for (rank_t r = 1; r < end; ++r) total = combined(how_.op, total, given<T>(r, me_, i));
    using C = computed_t<T>;
    if (how_.op == reduce_op::avg)
      total = static_cast<T>(static_cast<C>(static_cast<C>(total) / static_cast<C>(how_.size)));
    return total;
  }

  template <class T>
  void fill() {
    auto const write = [&](std::vector<std::byte>& to, std::size_t at, layout const& l, auto const& value) {
      for (std::size_t b = 0; b < l.counts.size(); ++b)
        for (std::size_t i = 0; i < l.counts[b]; ++i) {
          T const v = value(b, i);
          std::memcpy(to.data() + at + (l.offsets[b] + i) * sizeof(T), &v, sizeof v);
        }
    };
    write(before_, in_at_, in_,
          [&](std::size_t b, std::size_t i) { return given<T>(me_, static_cast<rank_t>(b), i); });
    memory_ = image_ = before_;
    bool const keeps_own = how_.what == collective_kind::exclusive_scan && me_ == 0;
    if (!keeps_own)
      write(image_, out_at_, out_, [&](std::size_t b, std::size_t i) { return gotten<T>(b, i); });
  }

  scenario how_;
  rank_t me_;
  shape is_;
  layout in_, out_;
  std::size_t in_at_ = 0, out_at_ = 0;
  std::vector<std::byte> before_, memory_, image_;
  std::byte* place_ = nullptr;
};

}  // namespace any_reference
