// SPDX-License-Identifier: Apache-2.0
// Tests that hold on processors that copy strings slowly, and on others.
#pragma once

#include "collx/device/vectors.hpp"

namespace device_test {

// Calls f(slowly) as on either, where this program can tell them apart.
template <class F>
void on_every_string_speed(F const& f) {
#if defined(COLLX_AVX2)
  namespace cpu = collx::device::cpu;
  struct restored {
    bool before = cpu::copies_strings_slowly;
    ~restored() { cpu::copies_strings_slowly = before; }
  } const at_the_end;
  for (bool const slowly : {false, collx::device::has_wide_vectors()}) {
    cpu::copies_strings_slowly = slowly;
    f(slowly);
  }
#else
  f(false);
#endif
}

}  // namespace device_test
