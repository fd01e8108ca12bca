# SPDX-License-Identifier: Apache-2.0
# Every tests/DIRECTORY/NAME.cpp becomes the test test_DIRECTORY_NAME, by itself or together with others.

# Several files are one translation unit then, which compiles once what each of them would have: half the time
# when all are built, and a third to a fifth where g++ only checks them. Not by default: who changes one test compiles its
# neighbours, and an #include that a test forgot goes unnoticed. scripts/test.sh asks for it.
option(COLLX_UNITE_TESTS "Compile several tests as one unit: half the time when all are built" OFF)
set(collx_tests_in_a_unit 16)

# What lines of a test's source ask for:
#   // ctest: PROPERTY VALUE        sets a property of the test (RUN_SERIAL ON for one that measures time, say; a
#                                   TIMEOUT below COLLX_TEST_TIMEOUT_S, which is long for sanitizers, does not count;
#                                   PROCESSORS 2 for one whose ranks wait for each other so often that it takes more
#                                   than twice as long beside another test)
#   // thread sanitizer: no         keeps a test that takes minutes under it, and gains nothing, out of that stage
#   // address sanitizer: no, REASON   the same for the preset asan-ubsan, for code that others run under it
#   // sanitizers: no, REASON       the same for all, for what takes half a minute to compile and runs no code that
#                                   others do not run under them
#   // component: NAME              links collx::NAME; where that is missing, the test is skipped, visibly
#   // compiled: as users do        -O2 -DNDEBUG where the test would run for long otherwise; others compile in half
#                                   the time. With `, since REASON` where it looks at what the compiler made of the
#                                   code: the preset gcc runs those, too. -O1 with sanitizers, which then see the code
#                                   that is left out where nothing is optimised
#   // compiled: apart, REASON      never in one unit with others
function(collx_add_test_directory directory)
  file(GLOB sources CONFIGURE_DEPENDS ${directory}/*.cpp)
  get_filename_component(group ${directory} NAME)
  # Two compilers differ in what they accept, which all tests ask, and in the code they make where they optimise: the
  # preset gcc makes no other, which is three quarters of the work.
  set(others_only_checked ${collx_test_sample})
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    file(STRINGS ${source} left_out REGEX "^// (sanitizers|${collx_sanitizer} sanitizer): no")
    if(left_out AND collx_sanitizer)
      continue()
    endif()
    file(STRINGS ${source} component REGEX "^// component: ")
    string(REGEX REPLACE "^// component: " "" component "${component}")
    if(component AND NOT TARGET collx::${component})
      add_test(NAME test_${group}_${name} COMMAND ${CMAKE_COMMAND} -E echo
               "SKIPPED: no collx::${component}; scripts/test.sh installs what it needs")
      set_tests_properties(test_${group}_${name} PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED:")
      continue()
    endif()
    file(STRINGS ${source} compiled REGEX "^// compiled: ")
    set(collx_only_checked ${others_only_checked})
    if(compiled MATCHES "as users do, since")
      set(collx_only_checked FALSE)
    endif()
    file(STRINGS ${source} tells_headers REGEX "^#define COLLX_")  # which must not have been read by then
    set(is_plain FALSE)  # compiled as what was precompiled is
    if(component MATCHES "^(tcp)?$" AND NOT compiled MATCHES "as users do" AND NOT tells_headers)
      set(is_plain TRUE)
    endif()
    if(COLLX_UNITE_TESTS AND is_plain AND NOT compiled)
      list(APPEND together_of_${component} ${source})
      continue()
    endif()
    collx_add_test_program(test_${group}_${name} ${source})
    file(STRINGS ${source} runs_ranks REGEX "#include \"(watched|collective/|collx/(collx|collective|bootstrap|any))")
    if(is_plain AND runs_ranks)
      collx_precompile_test(test_${group}_${name})
    endif()
    if(component)
      target_link_libraries(test_${group}_${name} PRIVATE collx::${component})
    endif()
    if(compiled MATCHES "as users do")
      if(collx_sanitizer)
        target_compile_options(test_${group}_${name} PRIVATE -O1)
      else()
        target_compile_options(test_${group}_${name} PRIVATE -O2 -DNDEBUG)
      endif()
    endif()
    if(NOT collx_only_checked)
      add_test(NAME test_${group}_${name} COMMAND test_${group}_${name})
      collx_describe_test(test_${group}_${name} ${source} test_${group}_${name})
    endif()
  endforeach()

  set(collx_only_checked ${others_only_checked})  # what is united is not optimised
  collx_unite_tests(${group} "" ${together_of_})
  collx_unite_tests(${group} tcp ${together_of_tcp})
endfunction()

# collx_unite_tests(GROUP COMPONENT source...): as few units as it takes, of about the same size.
function(collx_unite_tests group component)
  list(LENGTH ARGN count)
  if(count EQUAL 0)
    return()
  endif()
  math(EXPR units "(${count} + ${collx_tests_in_a_unit} - 1) / ${collx_tests_in_a_unit}")
  foreach(unit RANGE 1 ${units})
    math(EXPR begin "(${unit} - 1) * ${count} / ${units}")
    math(EXPR length "${unit} * ${count} / ${units} - ${begin}")
    list(SUBLIST ARGN ${begin} ${length} members)
    collx_add_unit(tests_of_${group}${component}_${unit} ${group} "${component}" ${members})
  endforeach()
endfunction()

# collx_add_unit(UNIT GROUP COMPONENT source...): one executable, of which each test runs the cases of its own file.
function(collx_add_unit unit group component)
  set(includes)
  set(bodies)
  foreach(source IN LISTS ARGN)
    get_filename_component(name ${source} NAME_WE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    collx_includes_first(${source})
    file(STRINGS ${source} of_source REGEX "^#include ")
    list(APPEND includes ${of_source})
    # What it includes has been read by then, and includes nothing again.
    string(APPEND bodies "namespace unit_of_${name} {\n#include \"${source}\"\n}\n")
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${unit}.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT "@includes@\n@bodies@" @ONLY)

  collx_add_test_program(${unit} ${file})
  collx_precompile_test(${unit})
  if(component)
    target_link_libraries(${unit} PRIVATE collx::${component})
  endif()
  if(collx_only_checked)
    return()
  endif()
  foreach(source IN LISTS ARGN)
    get_filename_component(name ${source} NAME_WE)
    set(test test_${group}_${name})
    set(cases "--source-file=*/${group}/${name}.cpp")
    add_test(NAME ${test} COMMAND ${unit} ${cases})
    collx_describe_test(${test} ${source} ${unit} ${cases})
    # By hand it is built and run by its own name, whether it is a unit of its own or not.
    add_custom_target(${test} DEPENDS ${unit})
    file(GENERATE OUTPUT $<TARGET_FILE_DIR:${unit}>/${test}
         CONTENT "#!/bin/sh\nexec \"$<TARGET_FILE:${unit}>\" '${cases}' \"$@\"\n"
         FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endforeach()
endfunction()

# Includes move in front of all the files of a unit: none may depend on what its own file says before it.
function(collx_includes_first source)
  file(STRINGS ${source} directives REGEX "^[ \t]*#")
  set(others FALSE)
  foreach(directive IN LISTS directives)
    if(NOT directive MATCHES "^#include ")
      set(others TRUE)
    endif()
    if(others AND directive MATCHES "^[ \t]*#[ \t]*include")
      message(FATAL_ERROR "${source} has '${directive}' below another directive, or spelled in another way than "
              "'#include ' at the beginning of a line, and cannot be one unit with other tests: write it so and first, "
              "or add a line  // compiled: apart, REASON")
    endif()
  endforeach()
endfunction()

# collx_describe_test(NAME source command...): what its source says about the run.
function(collx_describe_test name source)
  collx_limit_test(${name} ${COLLX_TEST_TIMEOUT_S})
  file(STRINGS ${source} properties REGEX "^// ctest: ")
  foreach(property IN LISTS properties)
    string(REGEX MATCH "^// ctest: ([A-Z_]+) (.+)$" _ "${property}")
    set_tests_properties(${name} PROPERTIES ${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  endforeach()
  # A test's own limit is for plain builds: it must not be less than what a sanitizer is given.
  get_test_property(${name} TIMEOUT limit_s)
  if(limit_s LESS COLLX_TEST_TIMEOUT_S)
    set(limit_s ${COLLX_TEST_TIMEOUT_S})
  endif()
  collx_limit_test(${name} ${limit_s})
  # The test cases whose names begin with "wide: " are another test (tests/asked_for.hpp).
  file(STRINGS ${source} has_wide REGEX "\"wide: ")
  if(has_wide)
    add_test(NAME ${name}_wide COMMAND ${ARGN} "--test-case=wide:*")
    set_tests_properties(${name}_wide PROPERTIES LABELS wide SKIP_REGULAR_EXPRESSION "SKIPPED:")
    collx_limit_test(${name}_wide 600)
    get_test_property(${name} PROCESSORS processors)
    if(processors)
      set_tests_properties(${name}_wide PROPERTIES PROCESSORS ${processors})
    endif()
  endif()
endfunction()
