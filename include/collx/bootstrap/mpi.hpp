// SPDX-License-Identifier: Apache-2.0
// connect<transport::mpi>(): the processes of an MPI program, after MPI_Init_thread. Needs some MPI (the
// CMake component collx::mpi).
#pragma once

#include "collx/bootstrap/connect.hpp"
#include "collx/net/protection.hpp"
#include "collx/transport/mpi.hpp"

namespace collx::inline abi_1::bootstrap {

// MPI's launcher has brought the ranks together already: those of MPI_COMM_WORLD.
template <>
struct start_of<transport::mpi> {
  using settings = transport::settings;

  // Throws error (bad_argument) if COLLX_TLS is 1: what MPI does with its network is not known.
  [[nodiscard]] COLLX_COLD static communicator<transport::mpi> connect(settings const& chosen) {
    net::refuse_tls("mpi");
    return transport::mpi::join(MPI_COMM_WORLD, chosen);
  }
};

}  // namespace collx::inline abi_1::bootstrap
