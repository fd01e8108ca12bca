// SPDX-License-Identifier: Apache-2.0
// The collectives of a rank without a GPU among ranks that have one, where the host drives: all_reduce(mine,
// in, out, op), without a stream. The call returns at once; host_copies::wait() waits for the results.
#pragma once

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "collx/host_driven.hpp"
#include "collx/transport/host_copies.hpp"

namespace collx::inline abi_1 {

#define COLLX_DETAIL_HOST_MEMORY_FORM(name)                                                       \
  template <class Algorithm = automatic, class Transport, class... Arguments>                     \
  void name(host_driven<Transport, transport::host_copies>& mine, Arguments&&... arguments) {     \
    mine.template enqueue<Algorithm>(detail::bind_##name(detail::where(mine), arguments...), {}); \
  }

COLLX_DETAIL_HOST_MEMORY_FORM(all_gather)
COLLX_DETAIL_HOST_MEMORY_FORM(all_reduce)
COLLX_DETAIL_HOST_MEMORY_FORM(all_to_all)
COLLX_DETAIL_HOST_MEMORY_FORM(broadcast)
COLLX_DETAIL_HOST_MEMORY_FORM(reduce)
COLLX_DETAIL_HOST_MEMORY_FORM(reduce_scatter)

#undef COLLX_DETAIL_HOST_MEMORY_FORM

}  // namespace collx::inline abi_1
