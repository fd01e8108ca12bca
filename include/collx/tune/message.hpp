// SPDX-License-Identifier: Apache-2.0
// A text that is put together piece by piece, in memory of its own: messages and explanations.
#pragma once

#include <cstdio>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::tune {

class message {
 public:
  // As printf. What does not fit any more is left out.
  template <class... Arguments>
  void add(char const* format, Arguments... arguments) noexcept {
    if (used_ + 1 >= sizeof text_) return;
    int const more = std::snprintf(text_ + used_, sizeof text_ - used_, format, arguments...);
    if (more > 0) used_ += static_cast<unsigned>(more);
  }
  void add(char const* words) noexcept { add("%s", words); }

  [[nodiscard]] char const* text() const noexcept { return text_; }

 private:
  unsigned used_ = 0;
  char text_[1600] = {};
};

}  // namespace collx::inline abi_1::tune
