// SPDX-License-Identifier: Apache-2.0
// Where a schedule's chunks lie in the user's buffers: the meeting point of contract (which blocks a
// buffer holds), geometry (how a block is cut) and memory (where a buffer begins). Knows neither
// schedules nor element types, so it is compiled once; and no processor, so that kernels use it too.
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/exec/geometry.hpp"
#include "collx/schedule/primitive.hpp"

namespace collx::inline abi_1::exec {

// Some chunks in memory: one piece where they follow each other, otherwise one per chunk.
struct run {
  std::byte* data = nullptr;  // of the only piece; null where there are several
  std::size_t bytes = 0;      // in all pieces together
  std::int32_t first = 0;     // chunk
  bool whole = true;          // one piece
};

// One of the pieces.
struct piece {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

// What a buffer holds when its blocks differ: elements of each, and where it begins, in the buffer's
// order. No counts: all blocks have that of the call, and follow each other. No offsets: the buffer is
// one block, and `counts` has an entry for every block of the vector.
struct block_table {
  std::size_t const* counts = nullptr;
  std::size_t const* offsets = nullptr;
};

// The user's side of one call, as its contract and arguments have it.
struct buffers {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  block_window input_window{}, output_window{};
  block_table input_table{}, output_table{};
  // How far the blocks of one buffer are apart, in elements; 0: they follow each other.
  std::size_t block_pitch = 0;
  std::int32_t output_pitch = 0;  // how far the output windows of neighbouring ranks are apart, in blocks
  bool numbers_peers = true;      // ranks of the group are those that peers are counted in
  bool in_place = false;          // input and output share memory, as the contract has it
  bool output_again = false;      // the output is that of the last call like this
  bool combines = false;          // the collective is a reduction
  bool sharded = false;           // a vector is a block of each rank, and not one block
  // Private payloads of larger blocks are staged, whatever receivers can do.
  std::size_t fetched_block_bytes_max = 0;
  // Peers may have the system store to a private output: the schedule says that it is worth it.
  bool lets_post = false;
  bool moves_blocks = false;  // as the schedule has it
  // Messages without bytes are neither sent nor expected: how ranks agree that know only the counts
  // of their own blocks, and so perhaps different numbers of fragments.
  bool skips_empty = false;
};

// The memory of one call as schedules see it: the user's buffers, and scratch of one fragment.
class chunk_map {
 public:
  chunk_map() = default;
  chunk_map(problem const& p, geometry const& cut, std::int32_t chunk_count, std::size_t element_bytes,
            buffers const& user, std::byte* scratch) noexcept
      : problem_(p),
        user_(user),
        cut_(cut),
        scratch_(scratch),
        element_bytes_(element_bytes),
        block_bytes_(cut_.count() * element_bytes),
        block_pitch_(user_.block_pitch == 0 ? cut_.count() : user_.block_pitch),
        chunk_count_(chunk_count),
        is_one_chunk_(cut_.undivided() && chunk_count == 1),
        uneven_(user_.input_table.counts != nullptr || user_.output_table.counts != nullptr) {}

  [[nodiscard]] COLLX_HD problem const& where() const noexcept { return problem_; }
  [[nodiscard]] COLLX_HD std::size_t fragments() const noexcept { return cut_.fragments(); }
  [[nodiscard]] COLLX_HD std::size_t element_bytes() const noexcept { return element_bytes_; }
  [[nodiscard]] COLLX_HD bool in_place() const noexcept { return user_.in_place; }
  [[nodiscard]] COLLX_HD bool skips_empty() const noexcept { return user_.skips_empty; }
  [[nodiscard]] COLLX_HD std::byte* output() const noexcept { return user_.output; }

  // For a map made with tables that have come to lie elsewhere.
  COLLX_HD void tables(block_table const& input, block_table const& output) noexcept {
    user_.input_table = input;
    user_.output_table = output;
  }

  // Bytes of the output, where each rank's output is the whole vector or nothing: chunks then lie equally far
  // from where it begins on all ranks. Else 0.
  [[nodiscard]] COLLX_HD std::size_t common_output_bytes() const noexcept {
    return !uneven_ && user_.output_pitch == 0 && user_.numbers_peers && user_.output_window.count == 1
               ? block_bytes_
               : 0;
  }

  // The elements of a block that a fragment has.
  [[nodiscard]] COLLX_HD extent elements(std::size_t fragment) const noexcept {
    return cut_.part_of_block(fragment, cut_.count());
  }

  // The chunks that the k-th peer of a step touches.
  [[nodiscard]] COLLX_HD COLLX_ALWAYS_INLINE run find(region const& r, std::int32_t k,
                                                      std::size_t fragment) const noexcept {
    // Of scratch there may be more slots than the vector has chunks.
    bool const is_first = r.where != place::scratch || r.first == 0;
    if (COLLX_LIKELY(is_one_chunk_ && r.count == 1 && is_first))
      return {base(r.where), block_bytes_, 0, true};
    return find_part(r, k, fragment);
  }

  // Bytes of a block, in schedules whose chunks are blocks.
  [[nodiscard]] COLLX_HD std::size_t block_bytes(place where, std::int32_t block) const noexcept {
    return COLLX_UNLIKELY(uneven_) ? count_of(where, block) * element_bytes_ : block_bytes_;
  }

  // The i-th chunk of a run, whether or not the run is one piece.
  [[nodiscard]] COLLX_HD piece chunk(run const& r, region const& of, std::int32_t i,
                                     std::size_t fragment) const noexcept {
    return locate(of.where, fragment, of.chunk(r.first, i, chunk_count_));
  }

 protected:
  // Elements from where a buffer begins, whose blocks are all alike.
  [[nodiscard]] COLLX_HD extent place_in(block_window const& window, std::size_t fragment,
                                         std::int32_t c) const noexcept {
    std::int32_t const parts = cut_.parts();
    std::int32_t const block = parts == 1 ? c : c / parts;
    extent e = cut_.part(fragment, parts == 1 ? 0 : c % parts);
    e.begin += begin_of(window, block);
    return e;
  }
  [[nodiscard]] COLLX_HD std::size_t begin_of(block_window const& window, std::int32_t block) const noexcept {
    return static_cast<std::size_t>(window.position(block)) * block_pitch_;
  }

  problem problem_{};
  buffers user_{};
  geometry cut_{};
  std::byte* scratch_ = nullptr;
  std::size_t element_bytes_ = 1, block_bytes_ = 0, block_pitch_ = 0;
  std::int32_t chunk_count_ = 1;
  bool is_one_chunk_ = false, uneven_ = false;

 private:
  [[nodiscard]] COLLX_HD std::byte* base(place where) const noexcept {
    return where == place::input ? user_.input : where == place::output ? user_.output : scratch_;
  }

  // Whether chunks that follow each other by number do so in memory.
  [[nodiscard]] COLLX_HD bool contiguous(place where) const noexcept {
    // Of scratch there may be more than a block.
    if (where == place::scratch) return cut_.fragments() == 1 && !uneven_;
    if (cut_.parts() == chunk_count_) return true;  // one block
    if (cut_.fragments() != 1 || uneven_) return false;
    return user_.block_pitch == 0 &&
           (where == place::input ? user_.input_window : user_.output_window).stride == 1;
  }

  [[nodiscard]] COLLX_HD COLLX_HOST_NEVER_INLINE run find_part(region const& r, std::int32_t k,
                                                               std::size_t fragment) const noexcept {
    std::int32_t const first = r.first_for(k, chunk_count_);
    run found{base(r.where), 0, first, true};
    if (r.count == 0) return found;
    if (COLLX_LIKELY(r.count == 1 && r.where != place::scratch && cut_.undivided() && !uneven_)) {
      block_window const& window = r.where == place::input ? user_.input_window : user_.output_window;
      found.data = moved(found.data, begin_of(window, first));
      found.bytes = block_bytes_;
      return found;
    }
    if (r.count == 1 || (r.is_one_run() && contiguous(r.where))) {
      piece const begin = locate(r.where, fragment, first);
      found.data = begin.data;
      found.bytes = begin.bytes;
      if (r.count > 1) {
        piece const last = locate(r.where, fragment, first + r.count - 1);
        found.bytes = static_cast<std::size_t>(last.data - begin.data) + last.bytes;
      }
      return found;
    }
    found.data = nullptr;
    found.whole = false;
    for (std::int32_t i = 0; i < r.count; ++i) found.bytes += chunk(found, r, i, fragment).bytes;
    return found;
  }

  [[nodiscard]] COLLX_HD COLLX_HOST_NEVER_INLINE piece locate(place where, std::size_t fragment,
                                                              std::int32_t c) const noexcept {
    extent const e =
        where == place::scratch ? cut_.scratch_chunk(fragment, c)
        : COLLX_UNLIKELY(uneven_)
            ? place_uneven(where, fragment, c)
            : place_in(where == place::input ? user_.input_window : user_.output_window, fragment, c);
    return {moved(base(where), e.begin), e.count * element_bytes_};
  }

  // So many elements behind. As a number: a rank without this buffer may pass on what lies there on another.
  [[nodiscard]] COLLX_HD std::byte* moved(std::byte* buffer, std::size_t elements) const noexcept {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(buffer) + elements * element_bytes_);
  }

  // The same where every block has a count of its own. Chunks are then blocks.
  [[nodiscard]] COLLX_HD COLLX_HOST_NEVER_INLINE extent place_uneven(place where, std::size_t fragment,
                                                                     std::int32_t block) const noexcept {
    block_table const& table = table_of(where);
    extent e = cut_.part_of_block(fragment, count_of(where, block));
    if (table.offsets != nullptr) e.begin += table.offsets[entry_of(where, block)];
    return e;
  }
  [[nodiscard]] COLLX_HD block_table const& table_of(place where) const noexcept {
    return where == place::input ? user_.input_table : user_.output_table;
  }
  [[nodiscard]] COLLX_HD std::size_t entry_of(place where, std::int32_t block) const noexcept {
    block_window const& window = where == place::input ? user_.input_window : user_.output_window;
    return static_cast<std::size_t>(table_of(where).offsets != nullptr ? window.position(block) : block);
  }
  [[nodiscard]] COLLX_HD std::size_t count_of(place where, std::int32_t block) const noexcept {
    return table_of(where).counts[entry_of(where, block)];
  }
};

}  // namespace collx::inline abi_1::exec
