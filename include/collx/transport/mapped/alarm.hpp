// SPDX-License-Identifier: Apache-2.0
// The word that ends every wait: set once, by the first rank that gives up, in memory all ranks see.
#pragma once

#include "collx/core/atomic_word.hpp"
#include "collx/core/status.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1::transport::mapped {

// Who failed first, and over whom. World ranks.
struct first_failure {
  status code = status::ok;
  rank_t reporter = no_rank;
  rank_t culprit = no_rank;
};

class alarm {
 public:
  // The first caller wins; later ones change nothing.
  void raise(first_failure const& what) noexcept {
    std::uint64_t expected = 0;
    // Sequentially consistent for raised_by_now(); relaxed on failure: nothing is done with it.
    word_.compare_exchange_strong(expected, pack(what), std::memory_order_seq_cst, std::memory_order_relaxed);
  }

  // Relaxed: asked while waiting, and only to stop waiting.
  [[nodiscard]] bool raised() const noexcept { return word_.load(std::memory_order_relaxed) != 0; }

  // For who says first what he is about to do, and must not do it once it is raised; and for who waits for
  // those that did not see it. Sequentially consistent: one of the two sees what the other said.
  [[nodiscard]] bool raised_by_now() const noexcept { return word_.load(std::memory_order_seq_cst) != 0; }

  [[nodiscard]] first_failure read() const noexcept {
    std::uint64_t const word = word_.load(std::memory_order_acquire);
    return {static_cast<status>(word & 0xff), static_cast<rank_t>(word >> 8 & 0xfffffff) - 1,
            static_cast<rank_t>(word >> 36) - 1};
  }

 private:
  // Eight bits of status, twice twenty-eight of rank + 1, so that a raised word is never 0.
  [[nodiscard]] static std::uint64_t pack(first_failure const& what) noexcept {
    return static_cast<std::uint64_t>(what.code) | static_cast<std::uint64_t>(what.reporter + 1) << 8 |
           static_cast<std::uint64_t>(what.culprit + 1) << 36;
  }

  atomic_word<std::uint64_t> word_{0};
};

}  // namespace collx::inline abi_1::transport::mapped
