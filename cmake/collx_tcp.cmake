# SPDX-License-Identifier: Apache-2.0
# Defines collx::tcp, for programs whose ranks meet over a network (collx/transport/tcp.hpp, collx/bootstrap/network.hpp),
# where OpenSSL is installed (Debian: libssl-dev). Part of the installed package too: find_package(collx COMPONENTS tcp).

if(NOT TARGET collx::tcp)
  find_package(OpenSSL 1.1.1 QUIET COMPONENTS Crypto)
  if(TARGET OpenSSL::Crypto)
    add_library(collx::tcp INTERFACE IMPORTED GLOBAL)
    set_target_properties(collx::tcp PROPERTIES INTERFACE_LINK_LIBRARIES "collx::collx;OpenSSL::Crypto")
  endif()
endif()
