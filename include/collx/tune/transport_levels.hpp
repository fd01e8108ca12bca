// SPDX-License-Identifier: Apache-2.0
// The ways that a transport has from rank to rank, as the choice of algorithms sees them: one, or, where it
// is made of two transports, one inside a group of ranks and one between groups.
#pragma once

#include "collx/tune/decision.hpp"

namespace collx::inline abi_1::tune {

template <class Endpoint>
inline constexpr level level_of_transport{&transport_of<Endpoint>, Endpoint::is_mapped,
                                          Endpoint::is_mapped ? mapped_model : message_model};

template <class Endpoint>
[[nodiscard]] constexpr level near_level() {
  if constexpr (requires { typename Endpoint::near_endpoint; })
    return level_of_transport<typename Endpoint::near_endpoint>;
  else return level_of_transport<Endpoint>;
}

template <class Endpoint>
[[nodiscard]] constexpr level far_level() {
  if constexpr (requires { typename Endpoint::far_endpoint; })
    return level_of_transport<typename Endpoint::far_endpoint>;
  else return level_of_transport<Endpoint>;
}

}  // namespace collx::inline abi_1::tune
