// SPDX-License-Identifier: Apache-2.0
// The ports at which a job listens where the system would choose one (COLLX_PORTS): those that a firewall
// lets pass.
#pragma once

#include <cstdlib>

#include "collx/net/address.hpp"

namespace collx::inline abi_1::net {

struct port_range {
  std::uint16_t first = 0, last = 0;  // 0: whichever the system gives

  [[nodiscard]] bool is_any() const noexcept { return first == 0; }
  [[nodiscard]] std::uint32_t count() const noexcept { return 1u + last - first; }
  // Counted round and round.
  [[nodiscard]] std::uint16_t at(std::uint32_t which) const noexcept {
    return static_cast<std::uint16_t>(first + which % count());
  }

  // COLLX_PORTS=MIN:MAX; any if it is not set. Throws error (bad_argument).
  [[nodiscard]] COLLX_COLD static port_range from_environment() {
    port_range chosen;
    char const* const text = std::getenv("COLLX_PORTS");
    if (text == nullptr) return chosen;
    char const* at = text;
    bool const has_first = parse_port(at, chosen.first) && *at == ':';
    if (has_first) ++at;
    if (!has_first || !parse_port(at, chosen.last) || *at != '\0' || chosen.last < chosen.first)
      throw_error(status::bad_argument,
                  "COLLX_PORTS is \"%.60s\"; set it to the lowest and the highest port that ranks may listen "
                  "at, as in "
                  "20000:20999, or unset it",
                  text);
    return chosen;
  }
};

}  // namespace collx::inline abi_1::net
