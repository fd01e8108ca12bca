// SPDX-License-Identifier: Apache-2.0
// mpi.h, and what its error codes mean here. Needs some MPI (the CMake component collx::mpi).
#pragma once

// The C++ bindings that MPI once had are not used: some libraries still bring them along.
#if !defined(OMPI_SKIP_MPICXX)
#define OMPI_SKIP_MPICXX 1
#endif
#if !defined(MPICH_SKIP_MPICXX)
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include "collx/core/status.hpp"

namespace collx::inline abi_1::transport::mpi_parts {

// Errors mostly tell nothing but that there was one. A library with fault tolerance names lost processes.
[[nodiscard]] COLLX_COLD inline status status_of(int code) noexcept {
  int kind = MPI_SUCCESS;
  if (MPI_Error_class(code, &kind) != MPI_SUCCESS) return status::system_failure;
#if defined(MPIX_ERR_PROC_FAILED)
  if (kind == MPIX_ERR_PROC_FAILED) return status::peer_lost;
#endif
  return status::system_failure;
}

// The largest tag, the same on all ranks.
[[nodiscard]] COLLX_COLD inline int tag_max() noexcept {
  void* told = nullptr;
  int is_told = 0;
  constexpr int promised = 32767;
  if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &told, &is_told) != MPI_SUCCESS || is_told == 0)
    return promised;
  return *static_cast<int const*>(told);
}

}  // namespace collx::inline abi_1::transport::mpi_parts
