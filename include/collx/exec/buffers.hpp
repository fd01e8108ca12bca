// SPDX-License-Identifier: Apache-2.0
// Where a schedule's chunks lie in the user's buffers: the meeting point of contract (which chunks a
// buffer holds), geometry (how bytes are cut) and memory (where a buffer begins).
#pragma once

#include "collx/exec/geometry.hpp"

namespace collx::inline abi_1::exec {

// A run of chunks in memory: one piece where chunks follow each other, otherwise one per chunk.
template <class T>
struct run {
  T* data = nullptr;  // where the place begins; extents count from here unless pieces == 1
  place where = place::input;
  std::int32_t pieces = 0;
  std::size_t count = 0;  // elements in all pieces together
  geometry const* cut = nullptr;
  std::size_t fragment = 0;
  std::int32_t first = 0, window_first = 0;

  [[nodiscard]] std::size_t bytes() const noexcept { return count * sizeof(T); }

  [[nodiscard]] extent piece(std::int32_t i) const noexcept {
    if (pieces == 1) return {0, count};
    return where == place::scratch ? cut->scratch_chunk(fragment, first + i)
                                   : cut->chunk(fragment, first + i, window_first);
  }
};

// The memory of one call: input and output as the contract lays them out, scratch of one fragment.
// T is not const for the input either: in-place calls read and write it.
template <schedule S, class T>
class buffers {
 public:
  using contract = typename S::contract;

  buffers(problem p, T const* input, T* output, T* scratch, std::size_t count, std::size_t staging_bytes) noexcept
      : problem_(p),
        chunk_count_(S::chunk_count(p.size)),
        cut_(count, sizeof(T), chunk_count_, p.size, contract::sharded, largest_staged<S>(p.size), staging_bytes),
        base_{const_cast<T*>(input), output, scratch} {}

  [[nodiscard]] problem const& where() const noexcept { return problem_; }
  [[nodiscard]] std::size_t fragments() const noexcept { return cut_.fragments(); }
  [[nodiscard]] T* output() const noexcept { return base_[1]; }

  // The run that the k-th peer of a step touches. A region of no chunks is empty, wherever it is.
  [[nodiscard]] run<T> find(region const& r, std::int32_t k, std::size_t fragment) const noexcept {
    std::int32_t const first = r.first_for(k, chunk_count_);
    std::int32_t const window = window_first(r.where, problem_);
    run<T> found{base_[static_cast<int>(r.where)], r.where, r.count, 0, &cut_, fragment, first, window};
    // The same answer for every place: a step pairs the pieces of its operand and target by number.
    bool const whole = r.count == 1 || cut_.contiguous();
    if (whole && r.count != 0) {
      extent const begin = locate(r.where, fragment, first, window);
      extent const last = r.count == 1 ? begin : locate(r.where, fragment, first + r.count - 1, window);
      found.data += begin.begin;
      found.count = last.begin + last.count - begin.begin;
      found.pieces = 1;
    } else {
      for (std::int32_t i = 0; i < r.count; ++i) found.count += found.piece(i).count;
    }
    return found;
  }

  // Where the region lies in another rank's buffer, in elements from that buffer's begin.
  [[nodiscard]] extent find_at(rank_t rank, region const& r, std::size_t fragment) const noexcept {
    problem const theirs{rank, problem_.size, problem_.root};
    return locate(r.where, fragment, r.first, window_first(r.where, theirs));
  }

 private:
  [[nodiscard]] std::int32_t window_first(place where, problem p) const noexcept {
    if (where == place::input) return contract::input(p, chunk_count_).first;
    if (where == place::output) return contract::output(p, chunk_count_).first;
    return 0;
  }

  [[nodiscard]] extent locate(place where, std::size_t fragment, std::int32_t c, std::int32_t window) const noexcept {
    return where == place::scratch ? cut_.scratch_chunk(fragment, c) : cut_.chunk(fragment, c, window);
  }

  problem problem_;
  std::int32_t chunk_count_;
  geometry cut_;
  T* base_[3];
};

}  // namespace collx::inline abi_1::exec
