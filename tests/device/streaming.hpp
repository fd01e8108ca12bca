// SPDX-License-Identifier: Apache-2.0
// For tests of what is stored past the caches: it never is without vectors of 256 bits at least.
#pragma once

#include <doctest/doctest.h>

#include "collx/device/vectors.hpp"

inline void say_if_nothing_is_streamed() {
#if defined(COLLX_AVX2)
  if (collx::device::has_wide_vectors()) return;
#endif
  MESSAGE("SKIPPED: nothing is stored past the caches here, where there are no 256-bit vectors");
}
