# SPDX-License-Identifier: Apache-2.0
# Builds tests/consumers/main.cpp in one WAY from scratch in WORK, and runs it.
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(configure_build_and_run)
  run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumers/${WAY} -B ${WORK}/build -G ${GENERATOR}
      -DCMAKE_CXX_COMPILER=${CXX} ${ARGN})
  run(${CMAKE_COMMAND} --build ${WORK}/build)
  run(${WORK}/build/consumer)
endfunction()

# Installs, and moves what was installed, as those do who pack it. Every header must be there, also those that no
# consumer here includes.
function(install_and_move)
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
  file(RENAME ${WORK}/prefix ${WORK}/moved)
  file(GLOB_RECURSE ours RELATIVE ${SOURCE}/include ${SOURCE}/include/*)
  file(GLOB_RECURSE installed RELATIVE ${WORK}/moved/include ${WORK}/moved/include/*)
  list(REMOVE_ITEM ours ${installed})
  if(ours)
    message(FATAL_ERROR "not installed: ${ours}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

if(WAY STREQUAL "add_subdirectory")
  configure_build_and_run(-DCOLLX_SOURCE_DIR=${SOURCE})

elseif(WAY STREQUAL "fetch_content")
  run(${CMAKE_COMMAND} -E chdir ${SOURCE}
      ${CMAKE_COMMAND} -E tar cf ${WORK}/collx.tar CMakeLists.txt LICENSE cmake include)
  configure_build_and_run(-DCOLLX_ARCHIVE=${WORK}/collx.tar)

elseif(WAY STREQUAL "find_package")
  install_and_move()
  configure_build_and_run(-DCMAKE_PREFIX_PATH=${WORK}/moved -DCOLLX_VERSION=${VERSION})

elseif(WAY STREQUAL "pkg_config")
  find_program(pkg_config NAMES pkg-config pkgconf)
  if(NOT pkg_config)
    message(STATUS "SKIPPED: no pkg-config")
    return()
  endif()
  install_and_move()
  set(ENV{PKG_CONFIG_PATH} ${WORK}/moved/share/pkgconfig)
  run(${pkg_config} --exact-version=${VERSION} collx)
  # Some systems need it to link, some to compile, and this one neither: that it runs here shows nothing.
  foreach(what cflags libs)
    execute_process(COMMAND ${pkg_config} --${what} collx OUTPUT_VARIABLE ${what}
                    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    if(NOT ${what} MATCHES "-pthread")
      message(FATAL_ERROR "pkg-config --${what} collx says '${${what}}', without -pthread")
    endif()
  endforeach()
  set(flags "${cflags} ${libs}")
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(${CXX} -std=c++20 ${SOURCE}/tests/consumers/main.cpp ${flags} -o ${WORK}/consumer)
  run(${WORK}/consumer)

else()
  message(FATAL_ERROR "unknown WAY '${WAY}'")
endif()
