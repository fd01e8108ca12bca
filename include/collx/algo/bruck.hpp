// SPDX-License-Identifier: Apache-2.0
// Bruck's algorithms: any number of ranks in a logarithmic number of rounds, with K-1 messages at a time.
// The choice for small blocks; K is the number of ports that a rank can keep busy, plus one.
//
//   Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications in multiport
//   message-passing systems (1997).
//
// Cost for any n ranks, with R = ceil(log_K n) rounds:
//   all_gather  R rounds, (n-1)/n M bytes   (M: the whole vector)
//   all_to_all  R rounds, about R (K-1)/K M  (M: what one rank sends or gets, n blocks); scratch M
// The usual all_gather collects blocks in scratch memory and rotates them at the end; here they are
// received where they belong, round the end of the vector.
#pragma once

#include "collx/algo/composed_name.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

template <std::int32_t K>
struct bruck {
  static_assert(K >= 2, "collx: bruck<K> needs K >= 2: one message at a time, or more");

 private:
  static constexpr detail::composed_name spelled{"bruck", K};

 public:
  static constexpr char const* name = spelled.text;

  struct all_gather;
  struct all_to_all;

 private:
  static constexpr COLLX_HD std::int32_t rounds(rank_t n) {
    std::int32_t count = 0;
    for (std::int64_t reached = 1; reached < n; reached *= K) ++count;
    return count;
  }

  // How far the messages of a round reach: 1, 2, ..., K-1 times this.
  static constexpr COLLX_HD std::int32_t distance(std::int32_t round) {
    std::int32_t d = 1;
    while (round-- > 0) d *= K;
    return d;
  }

  static constexpr COLLX_HD rank_t behind(problem p, std::int32_t hops) {
    return p.rank < p.size - hops ? p.rank + hops : p.rank + hops - p.size;
  }
  static constexpr COLLX_HD rank_t before(problem p, std::int32_t hops) {
    return p.rank < hops ? p.rank + p.size - hops : p.rank - hops;
  }
};

// Before a round of distance d a rank has the d blocks from its own on. It sends them d, 2d, ... back; in
// the last round those ranks only that lack d blocks yet (`full` of them), and to one more the rest.
template <std::int32_t K>
struct bruck<K>::all_gather {
  using contract = contract::all_gather;
  static constexpr known_counts counts = known_counts::agreed;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    if (p.size == 1) return 1;
    std::int32_t const last = rounds(p.size) - 1;
    return 2 * (last + round_at(p.size, last).parts());
  }

  // Per round all sends, then all receives; two steps each where there is a rest. The first send is of
  // the input, which it also stores.
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    region const mine{place::input, p.rank, 1};
    region const home{place::output, p.rank, 1};
    if (p.size == 1) return {.operand = mine, .target = home, .store = true};
    std::int32_t const last = rounds(p.size) - 1;
    std::int32_t const index = s / 2 < last ? s / 2 : last;
    round const at = round_at(p.size, index);
    std::int32_t const part = s - 2 * index;
    bool const sends = part < at.parts();
    bool const is_rest = at.rest > 0 && part % at.parts() == at.parts() - 1;
    std::int32_t const hops = is_rest ? (at.full + 1) * at.d : at.d;
    std::int32_t const count = is_rest ? at.rest : at.d;
    std::int32_t const peers = is_rest ? 1 : at.full;
    if (!sends) {
      region target = round_the_end(place::output, behind(p, hops), count * peers, p.size);
      target.count = count;
      target.per_peer = peers > 1 ? count : 0;
      return {.from = {behind(p, hops), at.d, peers}, .target = target, .store = true};
    }
    peer_set const to{before(p, hops), -at.d, peers};
    if (s == 0) return {.to = to, .operand = mine, .target = home, .store = true};
    return {.to = to, .operand = round_the_end(place::output, p.rank, count, p.size)};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    if (n == 1) return {};
    std::int32_t const last = rounds(n) - 1;
    round const at = round_at(n, last);
    return {last + 1, last * (K - 1) + at.full + (at.rest > 0), n - 1};
  }

 private:
  struct round {
    std::int32_t d;     // blocks per message, and how far the first goes
    std::int32_t full;  // messages of that many
    std::int32_t rest;  // blocks in one more message
    [[nodiscard]] constexpr COLLX_HD std::int32_t parts() const { return (full > 0) + (rest > 0); }
  };

  static constexpr COLLX_HD round round_at(rank_t n, std::int32_t index) {
    std::int32_t const d = distance(index), held = n / d;
    return held < K ? round{d, held - 1, n % d} : round{d, K - 1, 0};
  }
};

// Slot i of scratch holds a block that has i hops to go; at the end, the one that came i hops. In the
// round of distance d = K^k those travel z * d hops whose number has the digit z at position k.
template <std::int32_t K>
struct bruck<K>::all_to_all {
  using contract = contract::all_to_all;
  static constexpr COLLX_HD bool supports(rank_t n) { return n <= paired_ranks_max; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n * n; }
  static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t n) { return n > 1 ? n : 0; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    if (p.size == 1) return 1;
    return 2 + 2 * messages(p.size);
  }

  // The input to scratch, beginning with the own block; per round all sends, then all receives; and back.
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    rank_t const n = p.size;
    region const rows = round_the_end(place::input, p.rank, n, n, p.rank * n);
    region const slots{place::scratch, 0, n};
    region const columns{.where = place::output,
                         .first = p.rank * n + p.rank,
                         .count = n,
                         .run = 1,
                         .pitch = -n,
                         .wraps = true};
    if (n == 1) return {.operand = rows, .target = columns, .store = true};
    if (s == 0) return {.operand = rows, .target = slots, .store = true};
    if (s == 2 * messages(n) + 1) return {.operand = slots, .target = columns, .store = true};
    std::int32_t const index = (s - 1) / (2 * (K - 1)), d = distance(index);
    std::int32_t const part = s - 1 - index * 2 * (K - 1), sent = digits(n, d);
    std::int32_t const hops = (part % sent + 1) * d;
    region const moved{.where = place::scratch,
                       .first = hops,
                       .count = travelling(n, d, hops),
                       .run = d,
                       .pitch = K * d};
    // Copied: what comes in takes the slots of what went out.
    if (part < sent) return {.to = only(behind(p, hops)), .operand = moved, .copy = true};
    return {.from = only(before(p, hops)), .target = moved, .store = true};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    std::int64_t blocks = 0;
    for (std::int32_t round = 0; round < rounds(n); ++round)
      for (std::int32_t d = distance(round), z = 1; z <= digits(n, d); ++z) blocks += travelling(n, d, z * d);
    return {rounds(n), messages(n), blocks};
  }

 private:
  // The digits but zero that numbers below n have at the position of d.
  static constexpr COLLX_HD std::int32_t digits(rank_t n, std::int32_t d) {
    return (n - 1) / d < K - 1 ? (n - 1) / d : K - 1;
  }

  static constexpr COLLX_HD std::int32_t messages(rank_t n) {
    std::int32_t const last = rounds(n) - 1;
    return last < 0 ? 0 : last * (K - 1) + digits(n, distance(last));
  }

  // How many numbers below n have the digit hops / d at the position of d.
  static constexpr COLLX_HD std::int32_t travelling(rank_t n, std::int32_t d, std::int32_t hops) {
    std::int32_t const rest = n % (K * d) - hops;
    return n / (K * d) * d + (rest < 0 ? 0 : rest < d ? rest : d);
  }
};

}  // namespace collx::inline abi_1::algo
