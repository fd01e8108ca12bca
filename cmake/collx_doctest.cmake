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
# scripts/test.sh, which compiles all tests, asks for it.
option(COLLX_PRECOMPILE_TESTS "Precompile headers for tests: a tenth less to compile, or more, when all are built" OFF)
if(COLLX_PRECOMPILE_TESTS)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp CONTENT "// Nothing.\n" @ONLY)
  add_library(collx_test_headers OBJECT ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp)
  target_include_directories(collx_test_headers PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(collx_test_headers PRIVATE COLLX_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(collx_test_headers PRIVATE collx::collx collx_warnings collx_doctest_main)
  # g++ keeps the library's own out: of 100 precompiled ones of GCC 12, which differ from run to run, 8 made it take a
  # wrong specialisation, always of one constrained template. They would gain 3 % more.
  set(precompiled <algorithm> <array> <atomic> <chrono> <functional> <memory> <mutex> <span> <stdexcept> <string>
      <thread> <vector> <doctest/doctest.h>)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    list(APPEND precompiled ${PROJECT_SOURCE_DIR}/include/collx/collx.hpp ${PROJECT_SOURCE_DIR}/tests/watched.hpp)
  endif()
  target_precompile_headers(collx_test_headers PRIVATE ${precompiled})
endif()

# collx_limit_test(NAME SECONDS): ctest ends the test then, and its watchdogs (tests/watchdog.hpp) before that.
function(collx_limit_test name limit_s)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${limit_s}
                       ENVIRONMENT_MODIFICATION "COLLX_TEST_TIMEOUT_S=set:${limit_s}")
endfunction()

# collx_add_test_program(NAME source...): a doctest executable; where collx_only_checked is true, nothing but what the
# compiler has to say of it.
function(collx_add_test_program name)
  collx_remove_launcher(${CMAKE_CURRENT_BINARY_DIR}/${name})
  if(collx_only_checked)
    add_library(${name} OBJECT ${ARGN})
    target_compile_options(${name} PRIVATE -fsyntax-only)
  else()
    add_executable(${name} ${ARGN})
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE COLLX_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE collx::collx collx_warnings collx_doctest_main)
endfunction()

# What stands in an executable's place since tests were united there (COLLX_UNITE_TESTS) is newer than its objects:
# nothing would link the executable, and the unit of that time would be run.
function(collx_remove_launcher path)
  if(EXISTS ${path})
    file(READ ${path} begin LIMIT 2 HEX)
    if(begin STREQUAL "2321")  # "#!"
      file(REMOVE ${path})
    endif()
  endif()
endfunction()

# collx_add_test(NAME source...): the same and its ctest entry.
function(collx_add_test name)
  collx_add_test_program(${name} ${ARGN})
  add_test(NAME ${name} COMMAND ${name})
  collx_limit_test(${name} ${COLLX_TEST_TIMEOUT_S})
endfunction()

# collx_precompile_test(NAME): with the precompiled headers, if there are any.
function(collx_precompile_test name)
  if(COLLX_PRECOMPILE_TESTS)
    target_precompile_headers(${name} REUSE_FROM collx_test_headers)
  endif()
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/collx_test_directory.cmake)
