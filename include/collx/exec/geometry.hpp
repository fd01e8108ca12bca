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

#include "collx/core/types.hpp"

namespace collx::inline abi_1::exec {

// A run of elements: [begin, begin + count).
struct extent {
  std::size_t begin = 0;
  std::size_t count = 0;
};

// How one block is cut, and with it all: they are equal, except where a caller gives every block a count
// of its own (the _v collectives), which `of` stands for below.
class geometry {
 public:
  geometry() = default;

  // `count`: elements of a block, of the largest one this rank knows of where they differ.
  // `parts`: chunks per block. `most_staged`: chunks staged per fragment by the rank that stages most.
  //
  // `alike`: every rank passes the same count, so that fragments may depend on it.
  //
  // Divisions cost more than anything else a small collective does, so the common case, everything
  // in one fragment, is decided by multiplying.
  constexpr geometry(std::size_t count, std::size_t element_bytes, std::int32_t parts,
                     std::int64_t most_staged, std::size_t staging_bytes, bool alike = true)
      : count_(count), element_bytes_(element_bytes), fragment_count_(count), parts_(parts) {
    std::size_t const pieces = static_cast<std::size_t>(parts);
    std::size_t const staged = static_cast<std::size_t>(most_staged);
    // What does not fit at most, may fit yet, and is looked at more closely.
    if (!stays_whole(count * element_bytes, pieces, staged, staging_bytes)) {
      cut_fragments(staging_bytes / 2 / staged, alike);
    } else {
      last_part_ = full_part_ = part_of(count);
    }
  }

  // Whether a block of so many bytes is one fragment, of whatever elements, for all that stage so many chunks
  // or fewer. At most: a chunk may be rounded up by a line, twice, where parts begin and where it is staged.
  [[nodiscard]] static constexpr bool stays_whole(std::size_t block_bytes, std::size_t parts,
                                                  std::size_t most_staged, std::size_t staging_bytes) {
    return (block_bytes + parts * 2 * line_bytes) * most_staged <= staging_bytes / 2 * parts;
  }

  [[nodiscard]] COLLX_HD constexpr std::size_t fragments() const { return fragments_; }
  [[nodiscard]] COLLX_HD constexpr std::size_t count() const { return count_; }
  [[nodiscard]] COLLX_HD constexpr std::int32_t parts() const { return parts_; }
  // One fragment of one chunk: everything there is in a block.
  [[nodiscard]] COLLX_HD constexpr bool undivided() const { return fragments_ == 1 && parts_ == 1; }

  // Part i of a fragment, counted from where its block begins.
  [[nodiscard]] COLLX_HD constexpr extent part(std::size_t fragment, std::int32_t i) const {
    if (COLLX_LIKELY(undivided())) return {0, count_};
    extent within = split(fragment, i);
    within.begin += fragment * fragment_count_;
    return within;
  }

  // The same for a block of `of` elements, which is cut in fragments only.
  [[nodiscard]] COLLX_HD constexpr extent part_of_block(std::size_t fragment, std::size_t of) const {
    std::size_t const begin = fragment * fragment_count_;
    return begin < of ? extent{begin, length(fragment, of)} : extent{of, 0};
  }

  // Chunk c of scratch memory, which holds one fragment.
  [[nodiscard]] COLLX_HD constexpr extent scratch_chunk(std::size_t fragment, std::int32_t c) const {
    extent part = split(fragment, parts_ == 1 ? 0 : c % parts_);
    part.begin += static_cast<std::size_t>(parts_ == 1 ? c : c / parts_) * fragment_count_;
    return part;
  }

 private:
  static constexpr std::size_t line_bytes = 64;

  [[nodiscard]] COLLX_HD constexpr std::size_t length(std::size_t fragment, std::size_t of) const {
    std::size_t const rest = of - fragment * fragment_count_;
    return rest < fragment_count_ ? rest : fragment_count_;
  }

  // Out of line, as is all that divides.
  COLLX_NEVER_INLINE constexpr void cut_fragments(std::size_t chunk_bytes, bool alike) {
    std::size_t const pieces = static_cast<std::size_t>(parts_);
    // Whole lines, since staged chunks begin on lines, and parts too where elements fill lines.
    std::size_t const chunk_elements = chunk_bytes / line_bytes * line_bytes / element_bytes_;
    fragment_count_ = (chunk_elements == 0 ? 1 : chunk_elements) * pieces;
    if (fragment_count_ > count_) fragment_count_ = count_;
    fragments_ = fragment_count_ == 0 ? 1 : (count_ - 1) / fragment_count_ + 1;
    if (alike && fragments_ > 1) even_out(pieces);
    full_part_ = part_of(fragment_count_);
    last_part_ = fragments_ == 1 ? full_part_ : part_of(length(fragments_ - 1, count_));
  }

  // Fragments of one length instead of full ones and a rest: little would move while the rest does, and two
  // full ones beside a rest do not fit the staging memory, so that nobody stages one while another is read.
  constexpr void even_out(std::size_t pieces) {
    std::size_t const each = (count_ - 1) / fragments_ + 1;
    std::size_t const per_line = line_bytes % element_bytes_ == 0 ? line_bytes / element_bytes_ : 1;
    std::size_t const rounded = (each - 1) / (per_line * pieces) * (per_line * pieces) + per_line * pieces;
    if (rounded < fragment_count_) fragment_count_ = rounded;
    fragments_ = (count_ - 1) / fragment_count_ + 1;
  }

  // Elements per part when `length` elements are split in parts_ nearly equal parts.
  // Large parts begin on whole cache lines, so that two ranks never write to the same line.
  [[nodiscard]] constexpr std::size_t part_of(std::size_t length) const {
    return parts_ == 1 ? length : divided(length);
  }

  [[nodiscard]] COLLX_NEVER_INLINE constexpr std::size_t divided(std::size_t length) const {
    std::size_t const parts = static_cast<std::size_t>(parts_);
    std::size_t const each = (length + parts - 1) / parts;
    if (each * element_bytes_ < 16 * line_bytes || line_bytes % element_bytes_ != 0) return each;
    std::size_t const per_line = line_bytes / element_bytes_;
    return (each + per_line - 1) / per_line * per_line;
  }

  [[nodiscard]] COLLX_HD constexpr extent split(std::size_t fragment, std::int32_t i) const {
    std::size_t const whole = length(fragment, count_);
    std::size_t const each = fragment + 1 == fragments_ ? last_part_ : full_part_;
    std::size_t const first = static_cast<std::size_t>(i) * each;
    if (first >= whole) return {whole, 0};
    return {first, whole - first < each ? whole - first : each};
  }

  std::size_t count_ = 0, element_bytes_ = 1;
  std::size_t fragment_count_ = 0;
  std::size_t fragments_ = 1;
  std::size_t full_part_ = 0, last_part_ = 0;
  std::int32_t parts_ = 1;
};

}  // namespace collx::inline abi_1::exec
