// SPDX-License-Identifier: Apache-2.0
// A schedule and a contract as values: what an executor asks of them, whichever they are. Executors are so
// compiled once, not for every schedule; what is asked is asked once per step or per call, never per byte.
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/core/atomic_word.hpp"
#include "collx/schedule/concept.hpp"
#include "collx/schedule/staged.hpp"

namespace collx::inline abi_1::exec {

// What a schedule says of a number of ranks.
struct schedule_facts {
  std::int32_t chunk_count = 1;
  std::int32_t blocks = 1;  // of its contract
  std::int32_t scratch_chunks = 0;
  bool shares_copying = false;
  bool moves_blocks = false;
};

// Up to this size it is counted, and remembered, what a schedule stages.
inline constexpr rank_t counted_size_max = 64;

// One of the sizes, as one word that threads share: a shape's `inner`, and below it what was counted for it,
// which is never 0. Of the shapes of one size a program uses one, or it is counted again.
using staged_entry = atomic_word<std::uint64_t>;

struct erased_schedule {
  std::int32_t (*step_count)(problem const&) noexcept;
  primitive (*step)(problem const&, std::int32_t) noexcept;
  schedule_facts (*facts)(shape) noexcept;
  std::int64_t (*staged_bound)(shape) noexcept;
  staged_entry* staged;   // by size
  bool rooted, from_all;  // of its contract
};

struct buffer_windows {
  block_window input{}, output{};
};

struct erased_contract {
  buffer_windows (*windows)(problem const&) noexcept;
  bool rooted, from_all, sharded;
};

namespace detail {

template <schedule S>
struct answers_of {
  static constexpr std::int32_t step_count(problem const& p) noexcept { return S::step_count(p); }
  static constexpr primitive step(problem const& p, std::int32_t i) noexcept { return S::step(p, i); }
  static schedule_facts facts(shape n) noexcept {
    return {collx::chunk_count<S>(n), S::contract::blocks(n.size), collx::scratch_chunks<S>(n),
            collx::shares_copying<S>(n.size), collx::moves_blocks<S>()};
  }
  static std::int64_t staged_bound(shape n) noexcept { return collx::staged_chunks_bound<S>(n); }
  static inline staged_entry staged[counted_size_max + 1]{};
};

template <class Contract>
[[nodiscard]] buffer_windows windows_of(problem const& p) noexcept {
  return {Contract::input(p), Contract::output(p)};
}

// The most chunks any rank stages during one fragment, or keeps in scratch, whatever the root: the bound
// that every rank must agree on.
[[nodiscard]] COLLX_COLD inline std::int64_t count_staged(erased_schedule const& s, shape n) noexcept {
  std::int64_t largest = s.facts(n).scratch_chunks;
  if (largest < 1) largest = 1;
  for (rank_t root = 0; root < (s.rooted ? n.size : 1); ++root)
    for (rank_t rank = 0; rank < n.size; ++rank) {
      std::int64_t const staged = staged_chunks(s, {rank, n.size, root, n.inner});
      if (staged > largest) largest = staged;
    }
  return largest;
}

// What the schedule says of it, or else its documented cost, where it would take long to count.
[[nodiscard]] COLLX_COLD inline std::int64_t find_staged(erased_schedule const& s, shape n) noexcept {
  if (n.size > counted_size_max) {
    std::int64_t const sent = s.staged_bound(n), kept = s.facts(n).scratch_chunks;
    return sent > kept ? sent : kept;
  }
  std::int64_t const found = count_staged(s, n);
  // Relaxed: the value is the same whoever computes it, and nothing else is published with it.
  s.staged[n.size].store(
      std::uint64_t{static_cast<std::uint32_t>(n.inner)} << 32 | static_cast<std::uint32_t>(found),
      std::memory_order_relaxed);
  return found;
}

}  // namespace detail

template <schedule S>
inline constexpr erased_schedule erased_schedule_of{&detail::answers_of<S>::step_count,
                                                    &detail::answers_of<S>::step,
                                                    &detail::answers_of<S>::facts,
                                                    &detail::answers_of<S>::staged_bound,
                                                    &detail::answers_of<S>::staged[0],
                                                    S::contract::rooted,
                                                    S::contract::from_all};

template <class Contract>
inline constexpr erased_contract erased_contract_of{&detail::windows_of<Contract>, Contract::rooted,
                                                    Contract::from_all, Contract::sharded};

// The most chunks that any rank stages during one fragment, or keeps in scratch.
[[nodiscard]] inline std::int64_t largest_staged(erased_schedule const& s, shape n) noexcept {
  if (COLLX_LIKELY(n.size <= counted_size_max)) {
    // Relaxed: see where it is stored.
    std::uint64_t const found = s.staged[n.size].load(std::memory_order_relaxed);
    if (COLLX_LIKELY(found != 0 && found >> 32 == static_cast<std::uint32_t>(n.inner)))
      return static_cast<std::int32_t>(found);
  }
  return detail::find_staged(s, n);
}
template <schedule S>
[[nodiscard]] std::int64_t largest_staged(shape n) noexcept {
  return largest_staged(erased_schedule_of<S>, n);
}

}  // namespace collx::inline abi_1::exec
