# SPDX-License-Identifier: Apache-2.0
# doctest (the system's, else fetched) and the way every test is declared.

# Ten times what the longest take on a machine that does nothing else.
set(COLLX_TEST_TIMEOUT_S 300 CACHE STRING "Seconds after which ctest ends a test")

find_package(doctest 2.4 QUIET CONFIG)
if(NOT doctest_FOUND)
  message(STATUS "doctest is not installed (Debian: doctest-dev): fetching it")
  include(FetchContent)
  set(DOCTEST_NO_INSTALL ON CACHE BOOL "Not a part of what collx installs")
  FetchContent_Declare(doctest GIT_REPOSITORY https://github.com/doctest/doctest.git GIT_TAG v2.4.12
                       GIT_SHALLOW ON)
  FetchContent_MakeAvailable(doctest)
endif()

# main() is compiled once and linked into every test.
add_library(collx_doctest_main OBJECT ${PROJECT_SOURCE_DIR}/tests/main.cpp)
target_compile_features(collx_doctest_main PUBLIC cxx_std_20)
target_link_libraries(collx_doctest_main PUBLIC doctest::doctest)
# doctest's macros use __COUNTER__, which clang 22 counts among the extensions.
target_compile_options(collx_doctest_main PUBLIC
  $<$<AND:$<CXX_COMPILER_ID:Clang>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,22>>:-Wno-c2y-extensions>)

# What most tests that run ranks include, compiled once. Not by default: who changes a header compiles all tests
# again, a test that forgets an #include goes unnoticed, and ccache needs CCACHE_SLOPPINESS=pch_defines,time_macros.
# scripts/test.sh, which compiles all tests, asks for it, but for one compiler that finds what was forgotten.
option(COLLX_PRECOMPILE_TESTS "Precompile headers for tests: a fifth less to compile when all are built" OFF)
if(COLLX_PRECOMPILE_TESTS)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp CONTENT "// Nothing.\n" @ONLY)
  add_library(collx_test_headers OBJECT ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp)
  target_include_directories(collx_test_headers PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(collx_test_headers PRIVATE COLLX_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(collx_test_headers PRIVATE collx::collx collx_warnings collx_doctest_main)
  target_precompile_headers(collx_test_headers PRIVATE <algorithm> <array> <stdexcept> <string> <vector>
                            <doctest/doctest.h> ${PROJECT_SOURCE_DIR}/include/collx/collx.hpp
                            ${PROJECT_SOURCE_DIR}/tests/watched.hpp)
endif()

# collx_limit_test(NAME SECONDS): ctest ends the test then, and its watchdogs (tests/watchdog.hpp) before that.
function(collx_limit_test name limit_s)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${limit_s}
                       ENVIRONMENT_MODIFICATION "COLLX_TEST_TIMEOUT_S=set:${limit_s}")
endfunction()

# collx_add_test(NAME source...): a doctest executable and its ctest entry.
function(collx_add_test name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE COLLX_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE collx::collx collx_warnings collx_doctest_main)
  add_test(NAME ${name} COMMAND ${name})
  collx_limit_test(${name} ${COLLX_TEST_TIMEOUT_S})
endfunction()

# collx_add_wide_run(NAME): the test cases of a test whose names begin with "wide: " as another test, NAME_wide, of the same
# executable (tests/asked_for.hpp).
function(collx_add_wide_run name)
  add_test(NAME ${name}_wide COMMAND ${name} "--test-case=wide:*")
  set_tests_properties(${name}_wide PROPERTIES LABELS wide SKIP_REGULAR_EXPRESSION "SKIPPED:")
  collx_limit_test(${name}_wide 600)
endfunction()

# Every DIRECTORY/NAME.cpp becomes test_DIRECTORY_NAME. A line "// ctest: PROPERTY VALUE" in the source
# sets a property of the test (RUN_SERIAL ON for one that measures time, say; a TIMEOUT below COLLX_TEST_TIMEOUT_S, which
# is long for sanitizers, does not count). A line "// thread sanitizer: no"
# keeps a test that takes minutes under it, and gains nothing, out of that stage; "// sanitizers: no, REASON" one that takes
# half a minute to compile and runs no code that others do not run under them. A line "// component: NAME" links
# collx::NAME; where that is missing, the test is skipped, visibly. Tests compile unoptimised, which takes half the
# time; a line "// compiled: as users do" asks for -O2 -DNDEBUG where the test would run for long otherwise, or
# looks at what the compiler made of the code. A sanitizer's own flags stay as they are.
function(collx_add_test_directory directory)
  file(GLOB sources CONFIGURE_DEPENDS ${directory}/*.cpp)
  get_filename_component(group ${directory} NAME)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    file(STRINGS ${source} not_for_threads REGEX "^// thread sanitizer: no")
    if(not_for_threads AND CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
      continue()
    endif()
    file(STRINGS ${source} not_for_any REGEX "^// sanitizers: no")
    if(not_for_any AND CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
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
    collx_add_test(test_${group}_${name} ${source})
    file(STRINGS ${source} as_users_do REGEX "^// compiled: as users do")
    file(STRINGS ${source} runs_ranks REGEX "#include \"(watched|collective/|collx/(collx|collective|bootstrap|any))")
    file(STRINGS ${source} tells_headers REGEX "^#define COLLX_")  # which must not have been read by then
    if(COLLX_PRECOMPILE_TESTS AND runs_ranks AND NOT tells_headers AND NOT as_users_do
       AND component MATCHES "^(tcp)?$")  # others are not compiled as what was precompiled
      target_precompile_headers(test_${group}_${name} REUSE_FROM collx_test_headers)
    endif()
    if(component)
      target_link_libraries(test_${group}_${name} PRIVATE collx::${component})
    endif()
    if(as_users_do AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
      target_compile_options(test_${group}_${name} PRIVATE -O2 -DNDEBUG)
    endif()
    file(STRINGS ${source} properties REGEX "^// ctest: ")
    foreach(property IN LISTS properties)
      string(REGEX MATCH "^// ctest: ([A-Z_]+) (.+)$" _ "${property}")
      set_tests_properties(test_${group}_${name} PROPERTIES ${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
    endforeach()
    # A test's own limit is for plain builds: it must not be less than what a sanitizer is given.
    get_test_property(test_${group}_${name} TIMEOUT limit_s)
    if(limit_s LESS COLLX_TEST_TIMEOUT_S)
      set(limit_s ${COLLX_TEST_TIMEOUT_S})
    endif()
    collx_limit_test(test_${group}_${name} ${limit_s})
    file(STRINGS ${source} has_wide REGEX "\"wide: ")
    if(has_wide)
      collx_add_wide_run(test_${group}_${name})
    endif()
  endforeach()
endfunction()
