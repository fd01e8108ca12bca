# SPDX-License-Identifier: Apache-2.0
# Defines collx::tcp, for programs whose ranks meet over a network (collx/bootstrap/network.hpp and what stands on
# it), where OpenSSL is installed (Debian: libssl-dev). Part of the installed package: find_package(collx COMPONENTS tcp).

# A function, since a package file sets variables in the project that looks for it: OpenSSL_FOUND may be the project's own.
function(collx_find_tcp)
  find_package(OpenSSL 1.1.1 QUIET COMPONENTS Crypto SSL)
  # Found: new enough, and with headers. The libraries' paths alone say nothing: they stay in the cache.
  if(OpenSSL_FOUND AND OPENSSL_CRYPTO_LIBRARY AND OPENSSL_SSL_LIBRARY AND NOT TARGET collx::tcp)
    # Not OpenSSL::Crypto: a project that adds collx to its own build cannot see what was found down here.
    add_library(collx::tcp INTERFACE IMPORTED GLOBAL)
    set_target_properties(collx::tcp PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${OPENSSL_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES "collx::collx;${OPENSSL_SSL_LIBRARY};${OPENSSL_CRYPTO_LIBRARY};${CMAKE_DL_LIBS}")
  endif()
endfunction()
collx_find_tcp()
