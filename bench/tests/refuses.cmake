# SPDX-License-Identifier: Apache-2.0
# Runs PROGRAM with ARGUMENTS; it must end with code 2 and an error that holds PATTERN.
execute_process(COMMAND ${PROGRAM} ${ARGUMENTS} TIMEOUT 100
                RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE error)
string(FIND "${error}" "${PATTERN}" at)
if(NOT code EQUAL 2)
  message(FATAL_ERROR "ended with ${code} instead of 2: ${output}${error}")
elseif(at EQUAL -1)
  message(FATAL_ERROR "says '${error}' and not '${PATTERN}'")
endif()
