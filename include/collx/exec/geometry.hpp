// SPDX-License-Identifier: Apache-2.0
// The one place where bytes are cut: fragment > chunk > slice. A schedule speaks of chunks only;
// every rank derives the same cut from (schedule, size, count), never from what kind of memory its
// own buffers are, so that ranks with different kinds of memory fit together.
//
//   fragment  what one run over the schedule moves. Bounded, so that everything a rank stages for
//             it fits half of its staging memory: a rank then never waits for staging within a
//             fragment, and the fragment before the last is always drainable.
//   chunk     one of the schedule's chunk_count parts of a fragment.
//   slice     what one message carries. Here a slice is a step's whole run of chunks.
#pragma once

#include <atomic>

#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::exec {

// A run of elements: [begin, begin + count).
struct extent {
  std::size_t begin = 0;
  std::size_t count = 0;
};

// Chunks that rank p stages at most during one fragment. A fan-out of one chunk counts once: all
// receivers read the same copy.
template <schedule S>
[[nodiscard]] constexpr std::int64_t staged_chunks(problem p) {
  std::int64_t total = 0;
  for (std::int32_t i = 0, n = S::step_count(p); i < n; ++i) {
    primitive const step = S::step(p, i);
    if (step.to.empty()) continue;
    bool const result = !step.from.empty();
    region const& sent = result && step.store ? step.target : step.operand;
    std::int32_t const others = step.to.count - (step.to.contains(p.rank, p.size) ? 1 : 0);
    std::int32_t const copies = !result && sent.per_peer != 0 ? others : others > 0;
    total += std::int64_t{copies} * (sent.count > 0 ? sent.count : step.target.count);
  }
  return total;
}

// The most chunks any rank stages during one fragment, whatever the root: the bound that every rank
// must agree on. Remembered per schedule for small communicators, where it is cheap to find; the
// documented cost, which counts every send, bounds it from above elsewhere.
template <schedule S>
[[nodiscard]] std::int64_t largest_staged(rank_t size) noexcept {
  constexpr rank_t remembered = 64;
  if (size > remembered) return S::documented_cost(size).chunks;
  // Relaxed: the value is the same whoever computes it, and nothing else is published with it.
  static std::atomic<std::int64_t> known[remembered + 1]{};
  std::int64_t largest = known[size].load(std::memory_order_relaxed);
  if (COLLX_LIKELY(largest != 0)) return largest;
  largest = 1;
  for (rank_t root = 0; root < (S::contract::rooted ? size : 1); ++root)
    for (rank_t rank = 0; rank < size; ++rank) {
      std::int64_t const staged = staged_chunks<S>({rank, size, root});
      if (staged > largest) largest = staged;
    }
  known[size].store(largest, std::memory_order_relaxed);
  return largest;
}

class geometry {
 public:
  // `count`: elements of the whole vector, or per rank for sharded contracts.
  // `most_staged`: chunks staged per fragment by the rank that stages most.
  //
  // Divisions cost more than anything else a small collective does, so the common case, everything
  // in one fragment, is decided by multiplying.
  constexpr geometry(std::size_t count, std::size_t element_bytes, std::int32_t chunk_count, rank_t size,
                     bool sharded, std::int64_t most_staged, std::size_t staging_bytes)
      : count_(count), element_bytes_(element_bytes), fragment_count_(count), sharded_(sharded) {
    chunks_per_block_ = !sharded ? chunk_count : chunk_count == size ? 1 : chunk_count / size;
    std::size_t const parts = static_cast<std::size_t>(chunks_per_block_);
    std::size_t const staged = static_cast<std::size_t>(most_staged);
    std::size_t const budget = staging_bytes / 2;
    // A chunk may be rounded up by a line, twice: where parts begin, and where it is staged.
    if ((count * element_bytes + parts * 2 * line_bytes) * staged > budget * parts) {
      std::size_t const chunk_bytes = budget / staged;
      std::size_t const usable = chunk_bytes > 2 * line_bytes ? chunk_bytes - 2 * line_bytes : 1;
      std::size_t const chunk_elements = usable / element_bytes;
      fragment_count_ = (chunk_elements == 0 ? 1 : chunk_elements) * parts;
      if (fragment_count_ > count) fragment_count_ = count;
      fragments_ = fragment_count_ == 0 ? 1 : (count - 1) / fragment_count_ + 1;
    }
    full_part_ = part_of(fragment_count_);
    last_part_ = fragments_ == 1 ? full_part_ : part_of(length(fragments_ - 1));
  }

  [[nodiscard]] constexpr std::size_t fragments() const { return fragments_; }
  [[nodiscard]] constexpr std::size_t count() const { return count_; }
  // One fragment of one chunk: everything there is.
  [[nodiscard]] constexpr bool undivided() const {
    return fragments_ == 1 && chunks_per_block_ == 1 && !sharded_;
  }

  // Where a chunk of a fragment lies in a buffer whose window begins at chunk `window_first`.
  [[nodiscard]] constexpr extent chunk(std::size_t fragment, std::int32_t c,
                                       std::int32_t window_first) const {
    std::size_t const begin = fragment * fragment_count_;
    if (!sharded_) {
      extent const part = split(fragment, c);
      return {begin + part.begin, part.count};
    }
    if (chunks_per_block_ == 1)
      return {static_cast<std::size_t>(c - window_first) * count_ + begin, length(fragment)};
    extent const part = split(fragment, c % chunks_per_block_);
    auto const block = static_cast<std::size_t>(c / chunks_per_block_ - window_first / chunks_per_block_);
    return {block * count_ + begin + part.begin, part.count};
  }

  // Chunk c of scratch memory, which holds one fragment.
  [[nodiscard]] constexpr extent scratch_chunk(std::size_t fragment, std::int32_t c) const {
    if (!sharded_) return split(fragment, c);
    extent part = split(fragment, c % chunks_per_block_);
    part.begin += static_cast<std::size_t>(c / chunks_per_block_) * fragment_count_;
    return part;
  }

  // Whether chunks c, c+1, ... of a fragment follow each other without gaps.
  [[nodiscard]] constexpr bool contiguous() const { return !sharded_ || fragments_ == 1; }

 private:
  static constexpr std::size_t line_bytes = 64;

  [[nodiscard]] constexpr std::size_t length(std::size_t fragment) const {
    std::size_t const rest = count_ - fragment * fragment_count_;
    return rest < fragment_count_ ? rest : fragment_count_;
  }

  // Elements per part when `length` elements are split in chunks_per_block_ nearly equal parts.
  // Large parts begin on whole cache lines, so that two ranks never write to the same line.
  [[nodiscard]] constexpr std::size_t part_of(std::size_t length) const {
    if (chunks_per_block_ == 1) return length;
    std::size_t const parts = static_cast<std::size_t>(chunks_per_block_);
    std::size_t const each = (length + parts - 1) / parts;
    if (each * element_bytes_ < 16 * line_bytes || line_bytes % element_bytes_ != 0) return each;
    std::size_t const per_line = line_bytes / element_bytes_;
    return (each + per_line - 1) / per_line * per_line;
  }

  [[nodiscard]] constexpr extent split(std::size_t fragment, std::int32_t i) const {
    std::size_t const whole = length(fragment);
    std::size_t const each = fragment + 1 == fragments_ ? last_part_ : full_part_;
    std::size_t const first = static_cast<std::size_t>(i) * each;
    if (first >= whole) return {whole, 0};
    return {first, whole - first < each ? whole - first : each};
  }

  std::size_t count_, element_bytes_;
  std::size_t fragment_count_;
  std::size_t fragments_ = 1;
  std::size_t full_part_ = 0, last_part_ = 0;
  std::int32_t chunks_per_block_ = 1;
  bool sharded_;
};

}  // namespace collx::inline abi_1::exec
