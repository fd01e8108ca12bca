# SPDX-License-Identifier: Apache-2.0
# Warnings for code of this project; never part of what users link.
add_library(collx_warnings INTERFACE)
target_compile_options(collx_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow -Werror=all-warnings>)
