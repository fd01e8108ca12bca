// SPDX-License-Identifier: Apache-2.0
// Tests that hold however quickly lines come from another processor's caches.
#pragma once

#include <doctest/doctest.h>

#include "collx/device/cpu.hpp"

namespace device_test {

// As long as it lives, the library takes something of the processor to be so: one of collx::device::cpu.
class assumed {
 public:
  assumed(bool& what, bool is_so) : what_(what), before_(what) { what = is_so; }
  assumed(assumed const&) = delete;
  ~assumed() { what_ = before_; }

 private:
  bool& what_;
  bool const before_;
};

// Calls f(slowly) for both, while the library takes it to be so.
template <class F>
void on_slow_and_quick_lines(F const& f) {
  for (bool const slowly : {false, true}) {
    CAPTURE(slowly);
    assumed const taken_for(collx::device::cpu::takes_lines_slowly, slowly);
    f(slowly);
  }
}

}  // namespace device_test
