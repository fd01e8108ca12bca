# SPDX-License-Identifier: Apache-2.0
# Defines collx::ucx, for programs that include collx/transport/ucx.hpp or collx/bootstrap/ucx.hpp, where UCX (Debian:
# libucx-dev) and OpenSSL are installed: ranks meet as those of collx::tcp do. Part of the installed package:
# find_package(collx COMPONENTS ucx). UCX_ROOT names the UCX where there are several.

include(${CMAKE_CURRENT_LIST_DIR}/collx_tcp.cmake)
find_path(COLLX_UCX_INCLUDE_DIR ucp/api/ucp.h HINTS ${UCX_ROOT} ENV UCX_ROOT PATH_SUFFIXES include)
foreach(part ucp ucs)
  find_library(COLLX_UCX_${part}_LIBRARY ${part} HINTS ${UCX_ROOT} ENV UCX_ROOT PATH_SUFFIXES lib)
  mark_as_advanced(COLLX_UCX_${part}_LIBRARY)
endforeach()
mark_as_advanced(COLLX_UCX_INCLUDE_DIR)
if(COLLX_UCX_INCLUDE_DIR AND COLLX_UCX_ucp_LIBRARY AND COLLX_UCX_ucs_LIBRARY AND TARGET collx::tcp
   AND NOT TARGET collx::ucx)
  add_library(collx::ucx INTERFACE IMPORTED GLOBAL)
  set_target_properties(collx::ucx PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${COLLX_UCX_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "collx::tcp;${COLLX_UCX_ucp_LIBRARY};${COLLX_UCX_ucs_LIBRARY}")
endif()
