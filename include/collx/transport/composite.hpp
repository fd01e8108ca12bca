// SPDX-License-Identifier: Apache-2.0
// Ranks of one host share memory, ranks of different hosts send messages: which it is, is decided for each
// peer.
#pragma once

#include "collx/transport/combined/membership.hpp"
#include "collx/transport/of_all.hpp"
#include "collx/tune/grouped_algorithms.hpp"

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

  // A rank that has joined both worlds, one reference on each of which is taken over, also where this
  // throws (error, or std::bad_alloc). `hosts[r]`: equal numbers for ranks of one host. `As`: the transport
  // itself, or a decorator of it.
  template <class As = composite>
  [[nodiscard]] static communicator<As> join(typename Near::world* near, typename Far::world* far,
                                             array<std::uint64_t> const& hosts) {
    world* const both = world_of(near, far, hosts);
    return of_all<As>(both, [&] { return As::membership::join_world(*both); });
  }

 private:
  [[nodiscard]] COLLX_COLD static world* world_of(typename Near::world* near, typename Far::world* far,
                                                  array<std::uint64_t> const& hosts) {
    try {
      return new world(near, far, hosts);
    } catch (std::bad_alloc const&) {  // it takes nothing over that it is not there for
      near->abort(status::aborted, far->rank(), no_rank);
      near->drop();
      far->drop();
      throw;
    }
  }
};

}  // namespace collx::inline abi_1::transport
