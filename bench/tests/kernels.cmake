# SPDX-License-Identifier: Apache-2.0
# Compiles KERNEL for each width with CXX, in a build for a processor that has the widest: three names, and no
# vectors that are wider than asked for.
file(MAKE_DIRECTORY ${FOLDER})
foreach(width IN ITEMS 16 32 64)
  execute_process(COMMAND ${CXX} -std=c++20 -march=x86-64-v4 ${FLAGS_${width}} -O2
                          -DLIMIT_VECTOR_BYTES=${width} -S ${KERNEL} -o ${FOLDER}/${width}.s
                  COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${FOLDER}/${width}.s code)
  string(REGEX MATCHALL "_ZN5limit[0-9]+[a-z0-9]+4find" names "${code}")
  list(REMOVE_DUPLICATES names)
  list(APPEND all_names ${names})
  if(width EQUAL 16 AND code MATCHES "%[yz]mm" OR width EQUAL 32 AND code MATCHES "%zmm")
    message(FATAL_ERROR "the loops of ${width} bytes have wider vectors")
  endif()
endforeach()
if(NOT all_names STREQUAL "_ZN5limit7generic4find;_ZN5limit4avx24find;_ZN5limit6avx5124find")
  message(FATAL_ERROR "the loops of 16, 32 and 64 bytes are named ${all_names}")
endif()
