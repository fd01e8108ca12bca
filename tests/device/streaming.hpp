// SPDX-License-Identifier: Apache-2.0
// For tests of what is stored past the caches: it never is without vectors of 512 bits.
#pragma once

#include <doctest/doctest.h>

#include "collx/device/cpu.hpp"

inline void say_if_nothing_is_streamed() {
#if defined(COLLX_WIDE_VECTORS)
  if (collx::device::cpu::wide_vectors) return;
#endif
  MESSAGE("SKIPPED: nothing is stored past the caches here, where there are no 512-bit vectors");
}
