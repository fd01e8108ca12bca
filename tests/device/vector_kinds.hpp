// SPDX-License-Identifier: Apache-2.0
// Tests that hold for every kind of vectors, on a processor that has several.
#pragma once

#include <doctest/doctest.h>

#include "collx/device/cpu.hpp"

namespace device_test {

// Calls f() once for each kind that this processor and this program have, while that is the one in use.
template <class F>
void on_every_kind(F const& f) {
#if defined(COLLX_AVX2)
  namespace cpu = collx::device::cpu;
  struct restored {
    cpu::vector_kind before = cpu::vectors_in_use;
    ~restored() { cpu::vectors_in_use = before; }
  } const at_the_end;
  for (int kind = 0; kind <= static_cast<int>(cpu::widest_vectors()); ++kind) {
    INFO("vectors: " << cpu::vector_kind_names[kind]);
    cpu::vectors_in_use = static_cast<cpu::vector_kind>(kind);
    f();
  }
#else
  f();
#endif
}

}  // namespace device_test
