// SPDX-License-Identifier: Apache-2.0
// Ranks are processes, of one host or of many, that send each other messages over UCX: on InfiniBand,
// Ethernet, Slingshot or shared memory, whichever a site's UCX knows. The CMake component collx::ucx; no
// other header includes this one.
#pragma once

#include "collx/transport/matched/membership.hpp"
#include "collx/transport/of_all.hpp"
#include "collx/transport/ucx/world.hpp"

namespace collx::inline abi_1::transport {

struct ucx {
  static constexpr char const* name = "ucx";
  using world = ucx_world;
  using endpoint = matched::endpoint<ucx_world>;
  template <class As>
  using membership_of = matched::membership<As>;
  using membership = membership_of<ucx>;

  // Rank `rank` of those that gave these cards; `by` is this rank's own worker. UCX lets in whoever knows an
  // address: it must have been told to who may know it only (bootstrap/ucx.hpp). The calling thread is the
  // one that uses the communicator, and all that are split from it. Throws error (bad_argument) for settings
  // that cannot be used, and when UCX or the system refuses, or std::bad_alloc. `As`: the transport itself,
  // or a decorator of it.
  template <class As = ucx>
  [[nodiscard]] COLLX_COLD static communicator<As> join(ucx_parts::worker by, array<ucx_parts::card> cards,
                                                        rank_t rank, settings const& chosen) {
    auto* const world = new ucx_world(static_cast<ucx_parts::worker&&>(by),
                                      static_cast<array<ucx_parts::card>&&>(cards), rank, chosen.checked());
    return of_all<As>(world, [&] { return As::membership::join_world(*world); });
  }
};

}  // namespace collx::inline abi_1::transport
