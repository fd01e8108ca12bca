# SPDX-License-Identifier: Apache-2.0
# What the compiler's flags, of a preset or given by hand, say of the tests; read here and nowhere else.
#   collx_sanitizer    address or thread (with others, too), else undefined where there is any, or empty
#   collx_test_sample  whether tests take less than everything (tests/sample.hpp)

set(collx_sanitizer)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*(address|thread)")
  set(collx_sanitizer ${CMAKE_MATCH_1})
elseif(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
  set(collx_sanitizer undefined)
endif()
set(collx_test_sample FALSE)
if(CMAKE_CXX_FLAGS MATCHES "COLLX_TEST_SAMPLE")
  set(collx_test_sample TRUE)
endif()
