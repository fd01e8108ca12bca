// SPDX-License-Identifier: Apache-2.0
// Tests that hold for every kind of vectors, on a processor that has several, and however it copies strings.
#pragma once

#include <doctest/doctest.h>

#include "collx/device/vectors.hpp"

namespace device_test {

// Gives a setting back what it was, at the end.
template <class T>
struct restored {
  T& setting;
  T before = setting;
  ~restored() { setting = before; }
};

// Calls f() once for each kind that this processor and this program have, while that is the one in use.
template <class F>
void on_every_kind(F const& f) {
#if defined(COLLX_AVX2)
  namespace cpu = collx::device::cpu;
  restored<cpu::vector_kind> const at_the_end{cpu::vectors_in_use};
  for (int kind = 0; kind <= static_cast<int>(cpu::widest_vectors()); ++kind) {
    INFO("vectors: " << cpu::vector_kind_names[kind]);
    cpu::vectors_in_use = static_cast<cpu::vector_kind>(kind);
    f();
  }
#else
  f();
#endif
}

// Calls f(slowly) as on a processor that copies strings slowly, and on others.
template <class F>
void on_every_string_speed(F const& f) {
#if defined(COLLX_AVX2)
  namespace cpu = collx::device::cpu;
  restored<bool> const at_the_end{cpu::copies_strings_slowly};
  for (bool const slowly : {false, collx::device::has_wide_vectors()}) {
    cpu::copies_strings_slowly = slowly;
    f(slowly);
  }
#else
  f(false);
#endif
}

}  // namespace device_test
