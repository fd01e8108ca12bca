// SPDX-License-Identifier: Apache-2.0
// When a rank is at its peers' buffers. Where memory is lent to peers, who read and write it in place or have
// the system do it, a call that fails must not return while one of them is at it: the caller may free it at
// once, or write to it what a peer that is late would take for the message.
//
//   a rank at work:     say that it is there;   has a peer given up?    then touch nothing
//   one that gives up:  say so to each peer;    is one of them there?   then wait until it is not
//
// Each must not look before what it said can be seen: then one of the two sees the other. The one that gives
// up sees to that for both sides, as a sleeper does (transport/mapped/doorbell.hpp), so that a call that
// works pays for two stores and a load of a line of its own.
#pragma once

#include "collx/core/config.hpp"
#include "collx/core/status.hpp"

namespace collx::inline abi_1::exec {

// An endpoint whose peers read and write memory that a rank has lent them. It offers
//   approach()            this rank may be at its peers' buffers from now on; false: it must not be, since
//                         one of them has given up
//   withdraw()            it is not any more; after approach() that returned true. False: a peer has given up
//                         meanwhile, and may have waited in vain: what was read may be what it wrote since
//   reclaim(t_us)         this rank gives up: see transport/concept.hpp
template <class Endpoint>
inline constexpr bool lends_memory = [] {
  if constexpr (requires { Endpoint::lends_memory; }) return Endpoint::lends_memory;
  else return false;
}();

// Does `work()`, which touches peers' buffers; returns what it does, or `barred`: nothing was done, or it was
// disturbed.
template <class Endpoint, class Work, class Outcome = status>
[[nodiscard]] COLLX_ALWAYS_INLINE Outcome at_peers(Endpoint& endpoint, Work const& work,
                                                   Outcome barred = status::aborted) noexcept {
  if constexpr (lends_memory<Endpoint>) {
    if (COLLX_UNLIKELY(!endpoint.approach())) return barred;
    Outcome const outcome = work();
    return COLLX_LIKELY(endpoint.withdraw()) ? outcome : barred;
  } else {
    return work();
  }
}

}  // namespace collx::inline abi_1::exec
