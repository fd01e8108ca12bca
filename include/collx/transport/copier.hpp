// SPDX-License-Identifier: Apache-2.0
// What moves bytes between a GPU and the host for collectives that a thread of the host drives
// (host_driven.hpp).
#pragma once

#include <concepts>
#include <cstddef>

#include "collx/core/status.hpp"

namespace collx::inline abi_1::transport {

// Rows of bytes, so far apart.
struct copied_rows {
  std::byte* to;
  std::size_t to_pitch;
  std::byte const* from;
  std::size_t from_pitch;
  std::size_t width_bytes, rows;
};

// What moves bytes between a GPU and memory of the host; transport/cuda/copy_engine.cuh is the one of CUDA.
// Copies in one direction end in the order in which they were queued; `half` is 0 or 1.
//
//   stream                          what users put work into
//   device()                        of the GPU, among those of this process; -1: there is none
//   half_bytes(), staging(half)     memory of the host that copies may use
//   word(i)                         a zeroed word of memory of the host that streams reach, i < words
//   fetch(half, rows)               queues a copy from the GPU; store(half, rows): to it
//   fetched(half), stored(half)     ok when all such copies of this half are done; pending; or system_failure
//   mark(stream, word, value)       in stream order: *word = value
//   hold(stream, word, value)       in stream order: goes on when *word is value or a later one (they wrap)
//   state()                         ok; or system_failure where streams stand still for good, as those of a
//   GPU
//                                   do after a kernel's error. By the thread that drives, while it waits
template <class C>
concept copier = requires(C& c, typename C::stream where, int half, copied_rows const& rows,
                          std::uint32_t* word, std::uint32_t value) {
  { c.device() } -> std::convertible_to<int>;
  { c.half_bytes() } -> std::convertible_to<std::size_t>;
  { c.staging(half) } -> std::same_as<std::byte*>;
  { c.word(half) } -> std::same_as<std::uint32_t*>;
  { c.fetch(half, rows) }
  noexcept->std::same_as<status>;
  { c.store(half, rows) }
  noexcept->std::same_as<status>;
  { c.fetched(half) }
  noexcept->std::same_as<status>;
  { c.stored(half) }
  noexcept->std::same_as<status>;
  { c.state() }
  noexcept->std::same_as<status>;
  c.mark(where, word, value);
  c.hold(where, word, value);
};

}  // namespace collx::inline abi_1::transport
