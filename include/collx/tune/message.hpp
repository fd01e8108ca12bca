// SPDX-License-Identifier: Apache-2.0
// A text that is put together piece by piece, in memory of its own: messages and explanations.
#pragma once

#include "collx/core/text_writer.hpp"

namespace collx::inline abi_1::tune {

class message : public text_writer {
 public:
  message() noexcept : text_writer{text_, sizeof text_} {}
  // Goes on in its own memory.
  message(message const& other) noexcept : message() { add("%s", other.text_); }
  message& operator=(message const& other) noexcept {
    if (this == &other) return *this;
    at = text_, left = sizeof text_;
    add("%s", other.text_);
    return *this;
  }

  [[nodiscard]] char const* text() const noexcept { return text_; }

 private:
  char text_[1600] = {};
};

}  // namespace collx::inline abi_1::tune
