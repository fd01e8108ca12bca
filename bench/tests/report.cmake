# SPDX-License-Identifier: Apache-2.0
# What collx_perf prints, and writes to JSON: three sizes, in two places each.
execute_process(COMMAND ${PROGRAM} all_reduce -b 8 -e 128 -f 4 -n 3 -w 1 -c 1 --batches 2 --pool 64K --json ${JSON} TIMEOUT 100
                RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE error)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "ended with ${code}: ${output}${error}")
endif()
foreach(wanted IN ITEMS "# method: all ranks meet in a barrier" "out-of-place +in-place"
        "size +count +type +redop +root +time +algbw +busbw #wrong +time +algbw +busbw #wrong +min +p99"
        "\n +8 +2 +float +sum +-1 [ .0-9]+ 0 [ .0-9]+ 0 [ .0-9]+ auto" "\n +128 +32 +float" "# Out of bounds values : 0 OK"
        "# Avg bus bandwidth +: [0-9]")
  if(NOT output MATCHES "${wanted}")
    message(FATAL_ERROR "nothing like '${wanted}' in:\n${output}")
  endif()
endforeach()

file(READ ${JSON} points)
string(JSON count LENGTH "${points}")
if(NOT count EQUAL 6)
  message(FATAL_ERROR "${count} points instead of 6 in ${points}")
endif()
foreach(pair IN ITEMS "collective;all_reduce" "transport;shm" "memory;private" "ranks;2" "bytes;8" "count;2" "type;float" "redop;sum"
        "place;out_of_place" "wrong;0")
  list(GET pair 0 key)
  list(GET pair 1 wanted)
  string(JSON found GET "${points}" 0 ${key})
  if(NOT found STREQUAL wanted)
    message(FATAL_ERROR "${key} is ${found} instead of ${wanted}")
  endif()
endforeach()
# Of one call: the least, the median, the last of a hundred; and the bytes that a bus moves, of 2 ranks those of the vector.
string(JSON least GET "${points}" 0 min_us)
string(JSON median GET "${points}" 0 median_us)
string(JSON most GET "${points}" 0 p99_us)
string(JSON algbw GET "${points}" 0 algbw_gb_s)
string(JSON busbw GET "${points}" 0 busbw_gb_s)
if(least GREATER median OR median GREATER most OR NOT least GREATER 0 OR NOT algbw STREQUAL busbw)
  message(FATAL_ERROR "min ${least}, median ${median}, p99 ${most}, algbw ${algbw}, busbw ${busbw}")
endif()

# Of fresh inputs: that they were, and what writing one took.
execute_process(COMMAND ${PROGRAM} all_gather --bytes 40K --state fresh -n 3 -w 1 --batches 2 --json ${JSON} TIMEOUT 100
                RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE error)
if(NOT code EQUAL 0 OR NOT output MATCHES "# state:  fresh")
  message(FATAL_ERROR "ended with ${code}: ${output}${error}")
endif()
file(READ ${JSON} points)
string(JSON state GET "${points}" 0 state)
string(JSON write_us GET "${points}" 0 write_us)
if(NOT state STREQUAL "fresh" OR NOT write_us GREATER 0)
  message(FATAL_ERROR "state ${state}, write_us ${write_us}")
endif()
