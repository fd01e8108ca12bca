// SPDX-License-Identifier: Apache-2.0
// Direct algorithms: every rank talks to every other rank at once. Fewest rounds there are; the
// choice wherever peers' memory can be read in place (one fan-in is one pass over memory) and for
// small vectors.
//
// Cost for n ranks and M bytes, sent by the busiest rank:
//   direct_one_shot  all_reduce 1 round, (n-1) M;  reduce_scatter 1, (n-1)/n M;  all_gather 1, (n-1)/n M;
//                    broadcast 1, (n-1) M (root);  reduce 1, M;  gather 1, M/n;  scatter 1, (n-1)/n M (root);
//                    all_to_all 1, n-1 blocks;  scan and exclusive_scan 1, (n-1) M (rank 0)
//   direct_two_shot  all_reduce 2 rounds, 2(n-1)/n M;  broadcast 2, 2(n-1)/n M;  reduce 2, M
// Contributions are combined in rank order. (all_gather counts M as the whole gathered vector.)
//
// The names are those of the GPU libraries (one-shot and two-shot all-reduce, as in TensorRT-LLM,
// MSCCL++ and NCCL's symmetric kernels).
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// What the direct schedules of one collective share.
struct direct_base {
  static constexpr bool keeps_rank_order = true;
  static constexpr reproducibility reproduces = reproducibility::any_transport;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t step_count(problem) { return 2; }
};

// Those of one shot: what each of their steps is, is known but for numbers.
struct one_shot_base : direct_base {
  static constexpr std::int32_t steps_max = 2;
};

// Take chunk `chunk` from everybody and combine in rank order: one fan-in, n memory streams.
[[nodiscard]] COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive reduce_from_everybody(problem p,
                                                                                     region operand,
                                                                                     region target) {
  return {.from = everybody(p.size),
          .operand = operand,
          .target = target,
          .reduce = true,
          .store = true,
          .complete = true};
}

// Send to everybody chunk `their rank` of the input; the k-th peer is rank + 1 + k.
[[nodiscard]] COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive scatter_to_everybody(problem p) {
  peer_set const peers = everybody_after(p.rank, p.size);
  return {.to = peers, .operand = {place::input, peers.first, 1, 1}};
}

// Take chunk `their rank` from everybody, and this rank's own chunk from `own`.
[[nodiscard]] COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive gather_from_everybody(problem p, place own) {
  peer_set const peers = everybody_after(p.rank, p.size);
  return {.from = peers,
          .operand = {own, p.rank, 1},
          .target = {place::output, peers.first, 1, 1},
          .store = true};
}

// Send the whole vector to every rank with a larger number. Copied, except by rank 0, which has no
// other result: in place, the result overwrites it.
[[nodiscard]] COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive send_behind(problem p) {
  peer_set const behind{p.rank + 1 == p.size ? 0 : p.rank + 1, 1, p.size - 1 - p.rank};
  return {.to = behind, .operand = {place::input, 0, 1}, .copy = p.rank != 0};
}

}  // namespace detail

// Steps are inlined wherever they are asked for: short calls (exec/short_call.hpp) are twice as fast with
// steps that are, and a compiler that finds few of them in a program may decide otherwise.
struct direct_one_shot {
  static constexpr char const* name = "direct_one_shot";

  // Everybody sends everything to everybody, and reduces everything: the least latency.
  struct all_reduce : detail::one_shot_base {
    using contract = contract::all_reduce;
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
    static COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      // Copied: the result may overwrite the input (in place) while a slower peer still reads it.
      if (s == 0)
        return {.to = everybody_after(p.rank, p.size), .operand = {place::input, 0, 1}, .copy = true};
      return detail::reduce_from_everybody(p, {place::input, 0, 1}, {place::output, 0, 1});
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n > 1, n - 1, n - 1}; }
    static constexpr std::int64_t staged_chunks(rank_t) { return 1; }
  };

  struct reduce_scatter : detail::one_shot_base {
    using contract = contract::reduce_scatter;
    static constexpr known_counts counts = known_counts::agreed;
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
    static COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      if (s == 0) return detail::scatter_to_everybody(p);
      return detail::reduce_from_everybody(p, {place::input, p.rank, 1}, {place::output, p.rank, 1});
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n > 1, n - 1, n - 1}; }
  };

  struct all_gather : detail::one_shot_base {
    using contract = contract::all_gather;
    static constexpr bool moves_blocks = true;
    static constexpr known_counts counts = known_counts::agreed;
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
    static COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      if (s == 0) return {.to = everybody_after(p.rank, p.size), .operand = {place::input, p.rank, 1}};
      return detail::gather_from_everybody(p, place::input);
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n > 1, n - 1, n - 1}; }
    static constexpr std::int64_t staged_chunks(rank_t) { return 1; }
  };

  struct broadcast : detail::one_shot_base {
    using contract = contract::broadcast;
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
    static constexpr COLLX_HD std::int32_t step_count(problem) { return 1; }
    static COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive step(problem p, std::int32_t) {
      region const whole{place::output, 0, 1};
      if (p.rank != p.root) return {.from = only(p.root), .target = whole, .store = true};
      return {.to = everybody_after(p.rank, p.size),
              .operand = {place::input, 0, 1},
              .target = whole,
              .store = true};
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n > 1, n - 1, n - 1}; }
    static constexpr std::int64_t staged_chunks(rank_t) { return 1; }
  };

  struct reduce : detail::one_shot_base {
    using contract = contract::reduce;
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
    static constexpr COLLX_HD std::int32_t step_count(problem) { return 1; }
    static COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive step(problem p, std::int32_t) {
      region const mine{place::input, 0, 1};
      if (p.rank == p.root) return detail::reduce_from_everybody(p, mine, {place::output, 0, 1});
      return {.to = only(p.root), .operand = mine};
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n > 1, n > 1, n > 1}; }
  };

  struct gather : detail::one_shot_base {
    using contract = contract::gather;
    static constexpr bool moves_blocks = true;
    static constexpr known_counts counts = known_counts::pairwise;
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
    static constexpr COLLX_HD std::int32_t step_count(problem) { return 1; }
    static COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive step(problem p, std::int32_t) {
      if (p.rank == p.root) return detail::gather_from_everybody(p, place::input);
      return {.to = only(p.root), .operand = {place::input, p.rank, 1}};
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n > 1, n > 1, n > 1}; }
  };

  struct scatter : detail::one_shot_base {
    using contract = contract::scatter;
    static constexpr bool moves_blocks = true;
    static constexpr known_counts counts = known_counts::pairwise;
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
    static constexpr COLLX_HD std::int32_t step_count(problem p) { return p.rank == p.root ? 2 : 1; }
    static COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      region const mine{place::output, p.rank, 1};
      if (p.rank != p.root) return {.from = only(p.root), .target = mine, .store = true};
      if (s == 0) return detail::scatter_to_everybody(p);
      return {.operand = {place::input, p.rank, 1}, .target = mine, .store = true};
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n > 1, n - 1, n - 1}; }
  };

  // Linear: every block goes straight from its sender to its receiver, all at once.
  struct all_to_all : detail::one_shot_base {
    using contract = contract::all_to_all;
    static constexpr bool moves_blocks = true;
    static constexpr known_counts counts = known_counts::pairwise;
    static constexpr COLLX_HD bool supports(rank_t n) { return n <= paired_ranks_max; }
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n * n; }
    static COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      peer_set const peers = everybody_after(p.rank, p.size);
      std::int32_t const row = p.rank * p.size;
      // Copied: in place, what comes from a peer overwrites what goes to it.
      if (s == 0)
        return {.to = peers,
                .operand = {.where = place::input,
                            .first = peers.first,
                            .count = 1,
                            .per_peer = 1,
                            .base = row,
                            .modulus = p.size},
                .copy = true};
      return {.from = peers,
              .operand = {place::input, row + p.rank, 1},
              .target = {place::output, peers.first * p.size + p.rank, 1, p.size},
              .store = true};
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n > 1, n - 1, n - 1}; }
  };

  // Rank r sends its vector to all ranks behind it, and combines those of all before it.
  struct scan : detail::one_shot_base {
    using contract = contract::scan;
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
    static COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      region const mine{place::input, 0, 1};
      if (s == 0) return detail::send_behind(p);
      peer_set const from = p.rank == 0 ? nobody() : peer_set{0, 1, p.rank + 1};
      return {.from = from,
              .operand = mine,
              .target = {place::output, 0, 1},
              .reduce = p.rank != 0,
              .store = true};
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n > 1, n - 1, n - 1}; }
    static constexpr std::int64_t staged_chunks(rank_t) { return 1; }
  };

  // The same without the own vector: rank 1 has nothing to combine, and rank 0 nothing to do but send.
  struct exclusive_scan : detail::one_shot_base {
    using contract = contract::exclusive_scan;
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
    static constexpr COLLX_HD std::int32_t step_count(problem p) { return p.rank == 0 ? 1 : 2; }
    static COLLX_ALWAYS_INLINE constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      if (s == 0) return detail::send_behind(p);
      return {.from = {0, 1, p.rank}, .target = {place::output, 0, 1}, .reduce = p.rank > 1, .store = true};
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n > 1, n - 1, n - 1}; }
    static constexpr std::int64_t staged_chunks(rank_t) { return 1; }
  };
};

struct direct_two_shot {
  static constexpr char const* name = "direct_two_shot";

  // Rank r reduces chunk r of everybody, then gives the result to everybody. The result is pushed:
  // where outputs are reachable, one pass reads n inputs and writes n outputs.
  struct all_reduce : detail::direct_base {
    using contract = contract::all_reduce;
    static constexpr COLLX_HD bool shares_copying(rank_t n) { return n == 2; }
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
    static constexpr COLLX_HD std::int32_t step_count(problem) { return 3; }
    static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      if (s == 0) return detail::scatter_to_everybody(p);
      if (s == 1) {
        primitive step =
            detail::reduce_from_everybody(p, {place::input, p.rank, 1}, {place::output, p.rank, 1});
        step.to = everybody_after(p.rank, p.size);
        step.push = true;
        return step;
      }
      return detail::gather_from_everybody(p, place::output);
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) {
      return {n > 1 ? 2 : 0, 2 * (n - 1), 2 * (n - 1)};
    }
    static constexpr std::int64_t staged_chunks(rank_t n) { return n; }
  };

  // Rank r reduces chunk r of everybody, and pushes the result to the root: where its output is reachable,
  // all ranks do as much.
  struct reduce : detail::direct_base {
    using contract = contract::reduce;
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
    static constexpr COLLX_HD std::int32_t step_count(problem p) { return p.rank == p.root ? 3 : 2; }
    static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      if (s == 0) return detail::scatter_to_everybody(p);
      if (s == 2) return detail::gather_from_everybody(p, place::output);
      region const mine{place::output, p.rank, 1};
      primitive step = detail::reduce_from_everybody(p, {place::input, p.rank, 1}, mine);
      if (p.rank == p.root) return step;
      step.to = only(p.root);
      step.push = true;
      step.store = false;
      return step;
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) { return n > 1 ? cost{2, n, n} : cost{0, 0, 0}; }
  };

  // The root scatters, then everybody gathers.
  struct broadcast : detail::direct_base {
    using contract = contract::broadcast;
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
    static constexpr COLLX_HD std::int32_t step_count(problem p) { return p.rank == p.root ? 3 : 2; }
    static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      peer_set const others = everybody_after(p.rank, p.size);
      region const mine{place::output, p.rank, 1};
      if (p.rank != p.root) {
        if (s == 0) return {.from = only(p.root), .to = others, .target = mine, .store = true};
        return detail::gather_from_everybody(p, place::output);
      }
      if (s == 0) return detail::scatter_to_everybody(p);
      if (s == 1) return {.to = others, .operand = {place::input, p.rank, 1}, .target = mine, .store = true};
      return detail::gather_from_everybody(p, place::output);
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) {
      return {n > 1 ? 2 : 0, 2 * (n - 1), 2 * (n - 1)};
    }
    static constexpr std::int64_t staged_chunks(rank_t n) { return n; }
  };
};

}  // namespace collx::inline abi_1::algo
