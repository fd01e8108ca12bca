// SPDX-License-Identifier: Apache-2.0
// The streaming loops, compiled once per vector width (kernel.cpp).
#pragma once

#include <cstddef>

#include "streams.hpp"

namespace limit {

// How a block is moved. Which is fastest depends on the processor, the size and the number of streams.
struct variant {
  char const* name;
  int width_bytes;  // of a vector
  bool past_cache;  // non-temporal stores
  int lines;        // cache lines of a stream that are read behind one another; 0: the C library's copy
  int pages = 1;    // of a stream that are walked at a time, a line of each in turn
};

// Reads `count` floats from each of in[0..reads) and writes them to each of out[0..writes). All pointers
// are aligned to a cache line.
using kernel = void (*)(streams const& s, float const* const* in, float* const* out, std::size_t count);

namespace generic {
[[nodiscard]] kernel find(streams const& s, variant const& how);
}
namespace avx2 {
[[nodiscard]] kernel find(streams const& s, variant const& how);
}
namespace avx512 {
[[nodiscard]] kernel find(streams const& s, variant const& how);
}

}  // namespace limit
