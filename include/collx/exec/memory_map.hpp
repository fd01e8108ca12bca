// SPDX-License-Identifier: Apache-2.0
// Where a schedule's chunks lie in the user's buffers: the meeting point of contract (which chunks a
// buffer holds), geometry (how elements are cut) and memory (where a buffer begins). Knows neither
// schedules nor element types, so it is compiled once.
#pragma once

#include "collx/device/stream.hpp"
#include "collx/exec/geometry.hpp"

namespace collx::inline abi_1::exec {

// A run of chunks in memory: one piece where chunks follow each other, otherwise one per chunk.
struct run {
  std::byte* data = nullptr;  // of the only piece; of the whole place where there are several
  std::size_t bytes = 0;      // in all pieces together
  std::int32_t pieces = 0;
  std::int32_t first = 0;     // chunk
  place where = place::input;
};

// Bytes from where a place begins: [begin, begin + bytes).
struct byte_extent {
  std::size_t begin = 0, bytes = 0;
};

// The memory of one call: input and output as the contract lays them out, scratch of one fragment.
class memory_map {
 public:
  // Which chunks the places hold: rank r's begin at r * stride. Linear for every contract.
  struct windows {
    std::int32_t input_stride = 0, output_stride = 0;
  };

  memory_map(problem p, geometry const& cut, std::int32_t chunk_count, std::size_t element_bytes,
             windows const& strides, std::byte* input, std::byte* output, std::byte* scratch) noexcept
      : problem_(p),
        cut_(cut),
        element_bytes_(element_bytes),
        chunk_count_(chunk_count),
        output_stride_(strides.output_stride),
        window_{p.rank * strides.input_stride, p.rank * strides.output_stride, 0},
        base_{input, output, scratch},
        whole_bytes_(cut.count() * element_bytes),
        in_place_(overlap(p, cut, element_bytes, strides, input, output)),
        streams_(whole_bytes_ > device::stream_bytes_min() && !in_place_) {}

  [[nodiscard]] problem const& where() const noexcept { return problem_; }
  [[nodiscard]] std::size_t fragments() const noexcept { return cut_.fragments(); }
  [[nodiscard]] std::size_t element_bytes() const noexcept { return element_bytes_; }
  // Whether input and output are the same memory (also where a sharded window is part of a whole).
  [[nodiscard]] bool in_place() const noexcept { return in_place_; }
  // Whether results are stored past the caches: large ones, unless the call is in place. Its lines
  // were just read, and to stream to lines that a cache holds is slower than to store.
  [[nodiscard]] bool streams() const noexcept { return streams_; }
  [[nodiscard]] std::byte* output() const noexcept { return base_[static_cast<int>(place::output)]; }

  // The run that the k-th peer of a step touches.
  [[nodiscard]] COLLX_ALWAYS_INLINE run find(region const& r, std::int32_t k,
                                             std::size_t fragment) const noexcept {
    if (COLLX_LIKELY(cut_.undivided() && r.count == 1))
      return {base_[static_cast<int>(r.where)], whole_bytes_, 1, 0, r.where};
    return find_part(r, k, fragment);
  }

  // The i-th piece of a run, in bytes from run.data.
  [[nodiscard]] byte_extent piece(run const& r, std::int32_t i, std::size_t fragment) const noexcept {
    if (r.pieces == 1) return {0, r.bytes};
    extent const e = locate(r.where, fragment, r.first + i, window_[static_cast<int>(r.where)]);
    return {e.begin * element_bytes_, e.count * element_bytes_};
  }

  // Where a region of the output lies in another rank's output, in bytes from its begin.
  [[nodiscard]] std::size_t offset_at(rank_t rank, region const& r, std::size_t fragment) const noexcept {
    return locate(place::output, fragment, r.first, rank * output_stride_).begin * element_bytes_;
  }

 private:
  // Arguments were checked: buffers overlap as the contract's in-place form has it, or not at all.
  [[nodiscard]] static bool overlap(problem p, geometry const& cut, std::size_t element_bytes,
                                    windows const& strides, std::byte const* input,
                                    std::byte const* output) noexcept {
    if (strides.input_stride == strides.output_stride) return input == output;
    std::size_t const own = static_cast<std::size_t>(p.rank) * cut.count() * element_bytes;
    return strides.input_stride == 0 ? input + own == output : output + own == input;
  }

  [[nodiscard]] COLLX_NEVER_INLINE run find_part(region const& r, std::int32_t k,
                                                 std::size_t fragment) const noexcept {
    int const which = static_cast<int>(r.where);
    std::int32_t const first = r.first_for(k, chunk_count_);
    // The same answer for every place: a step pairs the pieces of its operand and target by number.
    bool const whole = r.count == 1 || cut_.contiguous();
    run found{base_[which], 0, whole && r.count != 0 ? 1 : r.count, first, r.where};
    if (found.pieces == 1) {
      extent const begin = locate(r.where, fragment, first, window_[which]);
      extent const last =
          r.count == 1 ? begin : locate(r.where, fragment, first + r.count - 1, window_[which]);
      found.data += begin.begin * element_bytes_;
      found.bytes = (last.begin + last.count - begin.begin) * element_bytes_;
    } else {
      for (std::int32_t i = 0; i < r.count; ++i) found.bytes += piece(found, i, fragment).bytes;
    }
    return found;
  }

  [[nodiscard]] extent locate(place where, std::size_t fragment, std::int32_t c,
                              std::int32_t window) const noexcept {
    return where == place::scratch ? cut_.scratch_chunk(fragment, c) : cut_.chunk(fragment, c, window);
  }

  problem problem_;
  geometry cut_;
  std::size_t element_bytes_;
  std::int32_t chunk_count_, output_stride_;
  std::int32_t window_[3];
  std::byte* base_[3];
  std::size_t whole_bytes_;
  bool in_place_, streams_;
};

}  // namespace collx::inline abi_1::exec
