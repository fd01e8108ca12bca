# SPDX-License-Identifier: Apache-2.0
# Every header is read alone by the compiler, which makes no code of it: half a minute of two processors. A test is one
# call of the compiler with several headers, which it reads one after the other.
set(headers_in_a_test 64)

# read_alone(NAME FOLDERS header...)   FOLDERS: where it finds what a library brings
function(read_alone name folders)
  set(left ${ARGN})
  set(number 0)
  while(left)
    list(SUBLIST left 0 ${headers_in_a_test} headers)
    list(REMOVE_ITEM left ${headers})
    math(EXPR number "${number} + 1")
    set(sources)
    foreach(header IN LISTS headers)
      source_of(${header} source)
      list(APPEND sources ${source})
    endforeach()
    set(test test_${name}_${number}_read_alone)
    add_test(NAME ${test}
             COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -pthread -fsyntax-only -I${PROJECT_SOURCE_DIR}/include
                     "$<$<BOOL:${folders}>:-I$<JOIN:${folders},;-I>>" ${sources}
             COMMAND_EXPAND_LISTS)
    set_tests_properties(${test} PROPERTIES LABELS text TIMEOUT 600)
  endwhile()
endfunction()

read_alone(headers "" ${collx_headers})
foreach(library IN ITEMS mpi pmix tcp ucx)
  if(TARGET collx::${library})
    read_alone(headers_${library} "$<TARGET_PROPERTY:collx::${library},INTERFACE_INCLUDE_DIRECTORIES>"
               ${collx_${library}_headers})
  endif()
endforeach()
