# SPDX-License-Identifier: Apache-2.0
# Warnings for code of this project; never part of what users link. They are errors where the project tests
# itself: a compiler that its user has and we have not may warn of what is right.
add_library(collx_warnings INTERFACE)
target_compile_options(collx_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wshadow>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow>)
if(COLLX_WARNINGS_AS_ERRORS)
  target_compile_options(collx_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
