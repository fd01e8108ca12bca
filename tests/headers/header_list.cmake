# SPDX-License-Identifier: Apache-2.0
# collx_headers: every header, as users include it ("collx/core/types.hpp").
file(GLOB_RECURSE collx_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
     ${PROJECT_SOURCE_DIR}/include/collx/*.hpp)
list(FILTER collx_headers EXCLUDE REGEX "^collx/interop/")
