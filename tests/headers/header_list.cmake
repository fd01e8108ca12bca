# SPDX-License-Identifier: Apache-2.0
# collx_headers: every header, as users include it ("collx/core/types.hpp"), that needs nothing but the system.
# collx_tcp_headers: those that need OpenSSL (collx::tcp). collx_mpi_headers: those that need an MPI (collx::mpi).
# collx_pmix_headers: those that need libpmix (collx::pmix).
# collx_ucx_headers: those that need UCX (collx::ucx).
file(GLOB_RECURSE collx_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
     ${PROJECT_SOURCE_DIR}/include/collx/*.hpp)
list(FILTER collx_headers EXCLUDE REGEX "^collx/interop/")
set(collx_mpi_headers ${collx_headers})
set(with_mpi "^collx/(bootstrap/mpi|transport/mpi[./])")
list(FILTER collx_mpi_headers INCLUDE REGEX ${with_mpi})
list(FILTER collx_headers EXCLUDE REGEX ${with_mpi})
set(collx_ucx_headers ${collx_headers})
set(with_ucx "^collx/(bootstrap/ucx|transport/ucx[./])")
list(FILTER collx_ucx_headers INCLUDE REGEX ${with_ucx})
list(FILTER collx_headers EXCLUDE REGEX ${with_ucx})
set(collx_pmix_headers ${collx_headers})
set(with_pmix "^collx/bootstrap/pmix")
list(FILTER collx_pmix_headers INCLUDE REGEX ${with_pmix})
list(FILTER collx_headers EXCLUDE REGEX ${with_pmix})
set(collx_tcp_headers ${collx_headers})
set(with_openssl "^collx/(net/(mac|credentials|handshake|gate|caller|tls_stream|tls_context)|bootstrap/(gather|membership|meeting|network|store|tree|tcp|tcp_processes|composite)|transport/sockets/network_connector)")
list(FILTER collx_tcp_headers INCLUDE REGEX ${with_openssl})
list(FILTER collx_headers EXCLUDE REGEX ${with_openssl})
