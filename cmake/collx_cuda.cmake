# SPDX-License-Identifier: Apache-2.0
# Defines collx::cuda, for programs that include collx/device/cuda/*.cuh, where a CUDA toolkit of version 13 or newer
# is installed. Part of the installed package: find_package(collx COMPONENTS cuda).
#
# The static runtime, as nvcc itself links: a program must not have two.

# A function, since a package file sets variables in the project that looks for it: CUDAToolkit_FOUND may be the project's own.
function(collx_find_cuda)
  find_package(CUDAToolkit 13 QUIET)
  # The library's path alone says nothing: it stays in the cache of a project that has found an older toolkit.
  if(CUDAToolkit_FOUND AND CUDA_cudart_static_LIBRARY AND NOT TARGET collx::cuda)
    # Not CUDA::cudart_static: a project that adds collx to its own build cannot see what was found down here.
    add_library(collx::cuda INTERFACE IMPORTED GLOBAL)
    set_target_properties(collx::cuda PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${CUDAToolkit_INCLUDE_DIRS}"
      INTERFACE_LINK_LIBRARIES "collx::collx;${CUDA_cudart_static_LIBRARY};${CMAKE_DL_LIBS};rt")
  endif()
endfunction()
collx_find_cuda()
