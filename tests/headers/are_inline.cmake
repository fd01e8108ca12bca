# SPDX-License-Identifier: Apache-2.0
# Fails where one of OBJECTS (between |), each made of one header, defines a symbol that no second one may: what is
# neither inline nor a template. The linker takes any one of weak (V W v w) and unique (u) symbols.
string(REPLACE "|" ";" objects "${OBJECTS}")
list(LENGTH objects count)
if(count EQUAL 0)
  message(FATAL_ERROR "no objects")
endif()
execute_process(COMMAND ${NM} --defined-only --extern-only --demangle ${objects} OUTPUT_VARIABLE symbols
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[0-9a-f]+ [^VWuvw] [^\n]+" strong "${symbols}")
# That tells programs of two kinds apart, by a name that their linker takes only once (collective/invocation.hpp).
list(FILTER strong EXCLUDE REGEX " define_COLLX_CHOOSE_AT_RUN_TIME_for_all_files_or_for_none")
list(REMOVE_DUPLICATES strong)
if(strong)
  list(JOIN strong "\n  " lines)
  message(FATAL_ERROR "defined in a header, and not inline:\n  ${lines}")
endif()
message(STATUS "${count} objects")
