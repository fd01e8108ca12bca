# SPDX-License-Identifier: Apache-2.0
# Install rules: headers, a CMake package and a pkg-config file. Nothing in it depends on the
# architecture, so everything goes below share/ and include/.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(collx_package_dir ${CMAKE_INSTALL_DATADIR}/cmake/collx)

install(DIRECTORY include/collx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/collx)

target_include_directories(collx INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS collx EXPORT collx_targets)
install(EXPORT collx_targets NAMESPACE collx:: FILE collxTargets.cmake DESTINATION ${collx_package_dir})

configure_package_config_file(cmake/collxConfig.cmake.in ${PROJECT_BINARY_DIR}/collxConfig.cmake
  INSTALL_DESTINATION ${collx_package_dir} NO_SET_AND_CHECK_MACRO)
# Below 1.0 a minor version may break what was there before.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/collxConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/collxConfig.cmake ${PROJECT_BINARY_DIR}/collxConfigVersion.cmake
              cmake/collx_cuda.cmake cmake/collx_hwloc.cmake cmake/collx_mpi.cmake cmake/collx_tcp.cmake
              cmake/collx_pmix.cmake cmake/collx_ucx.cmake
  DESTINATION ${collx_package_dir})

# Relative to the file itself, so that an installed tree can be moved; where whoever packs it gives folders as absolute
# paths, those are meant as they are.
file(RELATIVE_PATH collx_pc_up /prefix/${CMAKE_INSTALL_DATADIR}/pkgconfig /prefix)
set(collx_pc_prefix "\${pcfiledir}/${collx_pc_up}")
if(IS_ABSOLUTE ${CMAKE_INSTALL_DATADIR})
  set(collx_pc_prefix ${CMAKE_INSTALL_PREFIX})
endif()
set(collx_pc_includedir "\${prefix}")
cmake_path(APPEND collx_pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(cmake/collx.pc.in ${PROJECT_BINARY_DIR}/collx.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/collx.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig)
