// SPDX-License-Identifier: Apache-2.0
// How long a schedule should take, from what it says of itself: the fallback where nothing was measured.
// Two models of a message, with the same four counts of a schedule:
//
//   alpha-beta-gamma   rounds * alpha + bytes * beta + combined * gamma
//                      (Hockney 1994, with the reduction's cost added as by Thakur et al. 2005)
//   LogGP              rounds * (L + 2 o) + (messages - rounds) * g + bytes * G + combined * gamma
//                      (Alexandrov et al. 1995; messages beyond those of the longest chain wait a gap)
//
// Both assume that a rank's own messages leave one after the other and that links are not shared; what they
// miss of chains and of many that send to one, the choice over messages adds (two_levels.hpp). Where peers'
// memory is read in place they are wrong by tens of per cent; collx_tune prints by how much.
#pragma once

#include <initializer_list>

#include "collx/schedule/concept.hpp"
#include "collx/tune/question.hpp"

namespace collx::inline abi_1::tune {

// What of a schedule costs time, of the busiest rank; blocks are those of the contract (contract.hpp).
struct factors {
  double rounds = 0;
  double messages = 0;
  double sent_blocks = 0;
  double combined_blocks = 0;  // second operands of reductions
};

struct alpha_beta_gamma {
  double alpha_us = 0;
  double beta_us_per_byte = 0;
  double gamma_us_per_byte = 0;

  [[nodiscard]] constexpr double operator()(factors const& f, std::size_t block_bytes) const {
    double const bytes = static_cast<double>(block_bytes);
    return f.rounds * alpha_us + bytes * (f.sent_blocks * beta_us_per_byte +
                                          f.combined_blocks * gamma_us_per_byte);
  }
};

struct log_gp {
  double round_us = 0;  // L + 2 o: collectives never pay one without the other
  double gap_us = 0;    // g
  double gap_us_per_byte = 0;  // G
  double gamma_us_per_byte = 0;

  [[nodiscard]] constexpr double operator()(factors const& f, std::size_t block_bytes) const {
    double const bytes = static_cast<double>(block_bytes);
    double const waiting = f.messages > f.rounds ? f.messages - f.rounds : 0;
    return f.rounds * round_us + waiting * gap_us +
           bytes * (f.sent_blocks * gap_us_per_byte + f.combined_blocks * gamma_us_per_byte);
  }
};

// Where no fit was loaded. Mapped: two processes of one host, fitted by collx_tune (docs/choice.md).
// Messages: TCP over 25 Gbit/s Ethernet, as such networks usually are; nothing was measured.
inline constexpr log_gp mapped_model{.round_us = 0.17,
                                     .gap_us = 0.045,
                                     .gap_us_per_byte = 0.00014,
                                     .gamma_us_per_byte = 0.000004};
inline constexpr log_gp message_model{.round_us = 20,
                                      .gap_us = 3,
                                      .gap_us_per_byte = 0.00035,
                                      .gamma_us_per_byte = 0.00006};

// Chunks that one rank combines into others.
template <class S>
[[nodiscard]] constexpr std::int64_t combined_chunks(problem p) {
  std::int64_t chunks = 0;
  for (std::int32_t i = 0; i < S::step_count(p); ++i) {
    primitive const step = S::step(p, i);
    if (step.reduce)
      chunks += std::int64_t{step.from.count - 1} * step.target.count;  // the first is only read
  }
  return chunks;
}

// Walks the steps of a few ranks, and so takes microseconds for many: keep what it returns.
template <class S>
[[nodiscard]] constexpr factors factors_of(shape n) {
  cost const documented = documented_cost<S>(n);
  std::int64_t combined = 0;
  for (rank_t const rank : {rank_t{0}, rank_t{1}, n.size / 2, n.size - 1}) {
    if (rank >= n.size) continue;
    std::int64_t const here = combined_chunks<S>({rank, n.size, 0, n.inner});
    if (here > combined) combined = here;
  }
  double const blocks = S::contract::blocks(n.size);
  double const per_chunk = blocks / chunk_count<S>(n);
  return {static_cast<double>(documented.rounds), static_cast<double>(documented.messages),
          static_cast<double>(documented.chunks) * per_chunk, static_cast<double>(combined) * per_chunk};
}

}  // namespace collx::inline abi_1::tune
