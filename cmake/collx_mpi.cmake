# SPDX-License-Identifier: Apache-2.0
# Defines collx::mpi, for programs that include collx/transport/mpi.hpp, where some MPI is installed (Debian:
# libopenmpi-dev or libmpich-dev). Part of the installed package: find_package(collx COMPONENTS mpi).
# MPI_CXX_COMPILER names the MPI where there are several. Only its C functions are used, but a project need not have C.

set(MPI_CXX_SKIP_MPICXX TRUE)
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND AND NOT TARGET collx::mpi)
  add_library(collx::mpi INTERFACE IMPORTED GLOBAL)
  set(collx_mpi_libraries ${MPI_CXX_LIBRARIES})
  list(FILTER collx_mpi_libraries EXCLUDE REGEX "lib(mpi_cxx|mpichcxx)[.]")  # the bindings of old
  separate_arguments(collx_mpi_link_flags UNIX_COMMAND "${MPI_CXX_LINK_FLAGS}")
  set_target_properties(collx::mpi PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${MPI_CXX_INCLUDE_DIRS}"
    INTERFACE_COMPILE_OPTIONS "${MPI_CXX_COMPILE_OPTIONS}"
    INTERFACE_LINK_OPTIONS "${collx_mpi_link_flags}"
    INTERFACE_LINK_LIBRARIES "collx::collx;${collx_mpi_libraries}")
endif()
