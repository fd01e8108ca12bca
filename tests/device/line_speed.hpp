// SPDX-License-Identifier: Apache-2.0
// Tests that hold however quickly lines come from another processor's caches.
#pragma once

#include <doctest/doctest.h>

#include "collx/device/cpu.hpp"

namespace device_test {

// Calls f(slowly) for both, while the library takes it to be so.
template <class F>
void on_slow_and_quick_lines(F const& f) {
  namespace cpu = collx::device::cpu;
  struct restored {
    bool before = cpu::takes_lines_slowly;
    ~restored() { cpu::takes_lines_slowly = before; }
  } const at_the_end;
  for (bool const slowly : {false, true}) {
    CAPTURE(slowly);
    cpu::takes_lines_slowly = slowly;
    f(slowly);
  }
}

// As long as it lives, lines are taken to come so quickly, or not.
class quick_lines {
 public:
  explicit quick_lines(bool quickly) { collx::device::cpu::takes_lines_quickly = quickly; }
  quick_lines(quick_lines const&) = delete;
  ~quick_lines() { collx::device::cpu::takes_lines_quickly = before_; }

 private:
  bool before_ = collx::device::cpu::takes_lines_quickly;
};

}  // namespace device_test
