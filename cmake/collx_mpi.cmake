# SPDX-License-Identifier: Apache-2.0
# Defines collx::mpi, for programs that include collx/transport/mpi.hpp, where some MPI is installed (Debian:
# libopenmpi-dev or libmpich-dev). Part of the installed package: find_package(collx COMPONENTS mpi).
# MPI_CXX_COMPILER names the MPI where there are several. Only its C functions are used, but a project need not have C.

# A function: what it sets is seen by FindMPI's trials, and not by the project that collx is a part of. Nor is
# MPI_CXX_SKIP_MPICXX set: FindMPI would keep in the cache what that defines, for the project's own find_package(MPI).
function(collx_find_mpi)
  string(APPEND CMAKE_CXX_FLAGS " -DOMPI_SKIP_MPICXX=1 -DMPICH_SKIP_MPICXX=1")  # as collx/transport/mpi/api.hpp
  set(MPI_CXX_VALIDATE_SKIP_MPICXX TRUE)  # whether there are bindings for C++ is not asked
  find_package(MPI QUIET COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND OR TARGET collx::mpi)
    return()
  endif()
  add_library(collx::mpi INTERFACE IMPORTED GLOBAL)
  set(libraries ${MPI_CXX_LIBRARIES})
  list(FILTER libraries EXCLUDE REGEX "lib(mpi_cxx|mpichcxx)[.]")  # the bindings of old
  separate_arguments(link_flags UNIX_COMMAND "${MPI_CXX_LINK_FLAGS}")
  set_target_properties(collx::mpi PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${MPI_CXX_INCLUDE_DIRS}"
    INTERFACE_COMPILE_OPTIONS "${MPI_CXX_COMPILE_OPTIONS}"
    INTERFACE_LINK_OPTIONS "${link_flags}"
    INTERFACE_LINK_LIBRARIES "collx::collx;${libraries}")
endfunction()
collx_find_mpi()
