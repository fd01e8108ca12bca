# SPDX-License-Identifier: Apache-2.0
# How code of this project is compiled, with which warnings above all; never part of what users link. Warnings are errors
# where the project tests itself: a compiler that its user has and we have not may warn of what is right.
add_library(collx_warnings INTERFACE)
target_compile_options(collx_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wshadow>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow>)
if(COLLX_WARNINGS_AS_ERRORS)
  target_compile_options(collx_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()

# g++ clears its memory up again and again, for a tenth of its time in these files. Where there is enough for each processor, it
# begins to at 1 GB, of which few files need more.
cmake_host_system_information(RESULT collx_memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT collx_processors QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR collx_memory_mib_each "${collx_memory_mib} / ${collx_processors}")
if(collx_memory_mib_each GREATER 3000)
  target_compile_options(collx_warnings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>)
endif()
