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

# A macro: it ends the caller, who is this file.
macro(need_pkg_config)
  find_program(pkg_config NAMES pkg-config pkgconf)
  if(NOT pkg_config)
    message(STATUS "SKIPPED: no pkg-config")
    return()
  endif()
endmacro()

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

# Headers and package files found where a packager puts them: CMAKE_INSTALL_INCLUDEDIR and CMAKE_INSTALL_DATADIR.
function(check_folders headers data)
  file(REMOVE_RECURSE ${WORK}/collx ${WORK}/prefix ${WORK}/moved ${WORK}/user)
  run(${CMAKE_COMMAND} -S ${WORK}/source -B ${WORK}/collx -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
      -DCMAKE_INSTALL_PREFIX=${WORK}/prefix -DCMAKE_INSTALL_INCLUDEDIR=${headers} -DCMAKE_INSTALL_DATADIR=${data}
      -DCOLLX_BUILD_TESTS=OFF -DCOLLX_BUILD_EXAMPLES=OFF -DCOLLX_BUILD_BENCH=OFF)
  run(${CMAKE_COMMAND} --install ${WORK}/collx)
  set(root ${WORK}/prefix)
  if(NOT IS_ABSOLUTE ${data})  # absolute package files know where the prefix was
    file(RENAME ${WORK}/prefix ${WORK}/moved)
    set(root ${WORK}/moved)
  endif()
  set(package ${root})
  cmake_path(APPEND package ${data})
  set(ENV{PKG_CONFIG_PATH} ${package}/pkgconfig)
  execute_process(COMMAND ${pkg_config} --variable=includedir collx OUTPUT_VARIABLE found
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\\ " " " found "${found}")  # written for a shell
  if(NOT EXISTS ${found}/collx/collx.hpp)
    message(FATAL_ERROR "headers in ${headers}, package files in ${data}: pkg-config looks in ${found}")
  endif()
  # CMake checks that the folders of an imported target exist.
  run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumers/find_package -B ${WORK}/user -G ${GENERATOR}
      -DCMAKE_CXX_COMPILER=${CXX} -Dcollx_DIR=${package}/cmake/collx -DCOLLX_VERSION=${VERSION})
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

if(WAY STREQUAL "add_subdirectory")
  configure_build_and_run(-DCOLLX_SOURCE_DIR=${SOURCE})
  run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumers/${WAY} -B ${WORK}/old_toolkit -G ${GENERATOR}
      -DCMAKE_CXX_COMPILER=${CXX} -DCOLLX_SOURCE_DIR=${SOURCE} -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
      -DCUDA_cudart_static_LIBRARY=/of/an/old/toolkit)

elseif(WAY STREQUAL "fetch_content")
  run(${CMAKE_COMMAND} -E chdir ${SOURCE}
      ${CMAKE_COMMAND} -E tar cf ${WORK}/collx.tar CMakeLists.txt LICENSE cmake include)
  configure_build_and_run(-DCOLLX_ARCHIVE=${WORK}/collx.tar)

elseif(WAY STREQUAL "find_package")
  install_and_move()
  configure_build_and_run(-DCMAKE_PREFIX_PATH=${WORK}/moved -DCOLLX_VERSION=${VERSION})

elseif(WAY STREQUAL "pkg_config")
  need_pkg_config()
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

elseif(WAY STREQUAL "chosen_folders")
  need_pkg_config()
  # CMake refuses to install headers into the sources, where this build may be.
  file(COPY ${SOURCE}/CMakeLists.txt ${SOURCE}/LICENSE ${SOURCE}/cmake ${SOURCE}/include DESTINATION ${WORK}/source)
  # What is given relative to the prefix moves with it, and what is given as an absolute path stays where it is.
  check_folders(${WORK}/here/headers data)
  check_folders(include/of/others lib/data)
  check_folders(include ${WORK}/here/data)

else()
  message(FATAL_ERROR "unknown WAY '${WAY}'")
endif()
