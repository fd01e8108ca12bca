// SPDX-License-Identifier: Apache-2.0
// Text that is put together piece by piece in memory of a fixed size: messages and explanations.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>

#include "collx/core/config.hpp"

namespace collx::inline abi_1 {

// Where the next piece goes. Without constructors and more functions, which every file would compile.
struct text_writer {
  char* at;
  std::size_t left;  // bytes of room; 1 at the least: for the zero at the end

  // As printf. What does not fit any more is left out. One function of C's kind, not a template: that would
  // be compiled for every list of types.
  COLLX_PRINTF(2, 3) COLLX_COLD void add(char const* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    int const more = std::vsnprintf(at, left, format, arguments);
    va_end(arguments);
    std::size_t added = more > 0 ? static_cast<std::size_t>(more) : 0;
    if (added >= left) added = left - 1;
    at += added;
    left -= added;
  }
};

}  // namespace collx::inline abi_1
