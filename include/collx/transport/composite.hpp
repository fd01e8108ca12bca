// SPDX-License-Identifier: Apache-2.0
// Ranks of one host share memory, ranks of different hosts send messages: which it is, is decided for each
// peer.
#pragma once

#include "collx/transport/combined/membership.hpp"

namespace collx::inline abi_1::transport {

// composite<shm, tcp>. `Near` maps its peers' memory, `Far` reaches everybody.
template <class Near, class Far>
struct composite {
  static constexpr char const* name = "composite";
  using world = composite_world<typename Near::world, typename Far::world>;
  using endpoint = composite_endpoint<Near, Far>;
  template <class As>
  using membership_of = combined::membership<As>;
  using membership = membership_of<composite>;

  // A rank that has joined both worlds, one reference on each of which is taken over. `hosts[r]`: equal
  // numbers for ranks of one host. `As`: the transport itself, or a decorator of it.
  template <class As = composite>
  [[nodiscard]] static communicator<As> join(typename Near::world* near, typename Far::world* far,
                                             array<std::uint64_t> const& hosts, exec::wakefulness how) {
    auto* const both = new world(near, far, hosts);
    try {
      return {both, As::membership::join_world(*both, how)};
    } catch (error const&) {  // the system has refused something
      both->drop();
      throw;
    }
  }
};

}  // namespace collx::inline abi_1::transport
