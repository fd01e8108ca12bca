# SPDX-License-Identifier: Apache-2.0
# Defines collx::hwloc, for programs that include collx/interop/hwloc.hpp, where hwloc 2 is installed (Debian:
# libhwloc-dev). Part of the installed package too: find_package(collx COMPONENTS hwloc).

find_path(collx_hwloc_include_dir hwloc.h)
find_library(collx_hwloc_library hwloc)
mark_as_advanced(collx_hwloc_include_dir collx_hwloc_library)
if(collx_hwloc_include_dir AND collx_hwloc_library AND NOT TARGET collx::hwloc)
  add_library(collx::hwloc INTERFACE IMPORTED GLOBAL)
  set_target_properties(collx::hwloc PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${collx_hwloc_include_dir}"
    INTERFACE_LINK_LIBRARIES "collx::collx;${collx_hwloc_library}")
endif()
