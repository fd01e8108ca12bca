# SPDX-License-Identifier: Apache-2.0
# Defines collx::pmix, for programs that include collx/bootstrap/pmix.hpp, where libpmix (Debian: libpmix-dev) and what
# collx::tcp needs are installed. Part of the installed package: find_package(collx COMPONENTS pmix).

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(collx_pmix_hint QUIET pmix)  # Debian has the header in a folder of its own
endif()
find_path(collx_pmix_include_dir pmix.h HINTS ${collx_pmix_hint_INCLUDE_DIRS})
find_library(collx_pmix_library pmix HINTS ${collx_pmix_hint_LIBRARY_DIRS})
mark_as_advanced(collx_pmix_include_dir collx_pmix_library)
if(collx_pmix_include_dir AND collx_pmix_library AND TARGET collx::tcp AND NOT TARGET collx::pmix)
  add_library(collx::pmix INTERFACE IMPORTED GLOBAL)
  set_target_properties(collx::pmix PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${collx_pmix_include_dir}"
    INTERFACE_LINK_LIBRARIES "collx::tcp;${collx_pmix_library}")
endif()
