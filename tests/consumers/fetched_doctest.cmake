# SPDX-License-Identifier: Apache-2.0
# The project's own tests where the system has no doctest: cmake/collx_doctest.cmake fetches it. Here from a repository
# that is made of the system's doctest.h, and that git takes for the one on the network. Configures all, builds one test.
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

find_program(git git)
if(NOT git)
  message(STATUS "SKIPPED: no git")
  return()
endif()

# What is fetched, and from where.
file(READ ${SOURCE}/cmake/collx_doctest.cmake asked)
if(NOT asked MATCHES "GIT_REPOSITORY (https://[^ ]+) GIT_TAG (v([0-9]+)[.]([0-9]+)[.]([0-9]+))[ \n]")
  message(FATAL_ERROR "cmake/collx_doctest.cmake fetches doctest in another way; say here in which")
endif()
set(address ${CMAKE_MATCH_1})
set(tag ${CMAKE_MATCH_2})
set(MAJOR ${CMAKE_MATCH_3})
set(MINOR ${CMAKE_MATCH_4})
set(PATCH ${CMAKE_MATCH_5})

# A header that tells itself from the system's by its version, which every test prints; and what doctest's
# CMakeLists.txt does for who adds it to a build: its header is none of the system's then, and may be warned of.
file(REMOVE_RECURSE ${WORK})
file(READ ${HEADER} header)
foreach(part IN ITEMS MAJOR MINOR PATCH)
  string(REGEX REPLACE "(#define DOCTEST_VERSION_${part}) [0-9]+" "\\1 ${${part}}" header "${header}")
endforeach()
file(WRITE ${WORK}/upstream/doctest/doctest.h "${header}")
file(WRITE ${WORK}/upstream/CMakeLists.txt [[
cmake_minimum_required(VERSION 3.5)
project(doctest LANGUAGES CXX)
option(DOCTEST_NO_INSTALL "Skip the installation process" OFF)
add_library(doctest INTERFACE)
add_library(doctest::doctest ALIAS doctest)
target_include_directories(doctest INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/>)
if(NOT ${DOCTEST_NO_INSTALL})
  install(FILES doctest/doctest.h DESTINATION include/doctest)
endif()
]])
# Whatever the user's git does otherwise (sign, say), it does not here.
set(ENV{GIT_CONFIG_NOSYSTEM} 1)
set(ENV{GIT_CONFIG_GLOBAL} /dev/null)
set(commit ${git} -C ${WORK}/upstream -c user.name=collx -c user.email=collx@localhost commit --quiet -m doctest)
run(${git} init --quiet ${WORK}/upstream)
run(${git} -C ${WORK}/upstream add --all)
run(${commit})
run(${git} -C ${WORK}/upstream tag ${tag})
set(ENV{GIT_CONFIG_COUNT} 1)
set(ENV{GIT_CONFIG_KEY_0} url.file://${WORK}/upstream.insteadOf)
set(ENV{GIT_CONFIG_VALUE_0} ${address})

run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=-O0
    -DCMAKE_DISABLE_FIND_PACKAGE_doctest=ON -DCOLLX_WARNINGS_AS_ERRORS=ON -DCOLLX_BUILD_EXAMPLES=OFF
    -DCOLLX_BUILD_BENCH=OFF)
run(${CMAKE_COMMAND} --build ${WORK}/build --target test_docs_formula)
execute_process(COMMAND ${WORK}/build/tests/docs/test_docs_formula OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
message("${said}")
string(FIND "${said}" "doctest version is \"${MAJOR}.${MINOR}.${PATCH}\"" found)
if(found EQUAL -1)
  message(FATAL_ERROR "compiled with another doctest.h than the one that was fetched")
endif()

run(${CMAKE_COMMAND} --install ${WORK}/build --prefix ${WORK}/prefix)
if(EXISTS ${WORK}/prefix/include/doctest OR NOT EXISTS ${WORK}/prefix/include/collx/collx.hpp)
  message(FATAL_ERROR "what collx installs is not collx, or doctest with it")
endif()
