// SPDX-License-Identifier: Apache-2.0
// first error: communicators over mpi and ucx belong to the thread that joined
#include "collx/host_driven.hpp"
#include "collx/transport/host_copies.hpp"
#include "collx/transport/threads.hpp"

#ifdef FIXED
using transport = collx::transport::threads;
#else
// As endpoints over an MPI are, which need not be installed here.
struct transport : collx::transport::threads {
  struct endpoint : collx::transport::threads::endpoint {
    static constexpr bool is_of_one_thread = true;
  };
};
#endif

using driven = collx::host_driven<transport, collx::transport::host_copies>;
static_assert(driven::runs_on_gpus);
