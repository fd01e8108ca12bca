// SPDX-License-Identifier: Apache-2.0
// A place of the launcher's own where rank 0 can leave a line for the others: its key-value store.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::bootstrap {

class notice_board {
 public:
  static constexpr std::size_t text_bytes_max = 96;  // with the zero at its end

  notice_board() = default;
  notice_board(notice_board const&) = delete;
  virtual ~notice_board() = default;

  // Rank 0, once. May wait for the others, until the deadline. Throws error (system_failure, timeout).
  virtual void write(char const* text, std::uint64_t deadline_us) = 0;
  // The others: what rank 0 has written, or null as long as it has not. May wait. Throws error
  // (system_failure, timeout).
  [[nodiscard]] virtual char const* read(std::uint64_t deadline_us) = 0;
};

}  // namespace collx::inline abi_1::bootstrap
