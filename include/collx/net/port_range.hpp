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

  // The first ones, at which ranks meet whose port is made of their job's number. They listen there until
  // they have met, so another job rarely does. Gates, which stay, have the others while there are any.
  [[nodiscard]] std::uint32_t place_count() const noexcept { return count() < 8 ? 1 : count() / 4; }
  [[nodiscard]] std::uint16_t place(std::uint32_t number) const noexcept {
    return at(number % place_count());
  }

  // For a gate, in the order in which they are tried from the one with that number on: each of the others,
  // twice, since of two that try a port at the same time the system may refuse both; then each of these.
  [[nodiscard]] std::uint32_t try_count() const noexcept { return 2 * count(); }
  [[nodiscard]] std::uint16_t gate(std::uint32_t begin, std::uint32_t which) const noexcept {
    std::uint32_t const others = count() - place_count();
    return which < 2 * others ? at(place_count() + (begin + which) % others) : place(begin + which);
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
