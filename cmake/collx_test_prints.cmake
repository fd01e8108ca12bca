# SPDX-License-Identifier: Apache-2.0
# collx_add_test_prints(NAME TARGET PATTERN ARGUMENT...): a test that runs the program, which must end with code 0 and print something
# like PATTERN. (With PASS_REGULAR_EXPRESSION CTest does not look at the code: whoever prints, and crashes at its end, passes.)
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(collx_test_prints_script ${CMAKE_CURRENT_LIST_FILE})
  function(collx_add_test_prints name target pattern)
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> "-DARGUMENTS=${ARGN}"
                                  "-DPATTERN=${pattern}" -P ${collx_test_prints_script})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${COLLX_TEST_TIMEOUT_S})
  endfunction()
  return()
endif()

execute_process(COMMAND ${PROGRAM} ${ARGUMENTS} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE error)
message("${output}${error}")
if(NOT code EQUAL 0)
  message(FATAL_ERROR "ended with ${code}")
elseif(NOT output MATCHES "${PATTERN}")
  message(FATAL_ERROR "nothing like '${PATTERN}' above")
endif()
