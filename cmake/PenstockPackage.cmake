# What `cmake --install` leaves for find_package(penstock): libraries, the
# headers of the rooms without their insides, the parts.
add_library(penstock_all INTERFACE)
set_target_properties(penstock_all PROPERTIES EXPORT_NAME penstock)
target_link_libraries(penstock_all INTERFACE penstock_run)
install(TARGETS penstock_all EXPORT penstockTargets)

install(DIRECTORY penstock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h"
  PATTERN "detail" EXCLUDE PATTERN "fake" EXCLUDE PATTERN "part_test" EXCLUDE
  PATTERN "test_*" EXCLUDE
  PATTERN "cpu" EXCLUDE PATTERN "sim" EXCLUDE
  PATTERN "cuda" EXCLUDE PATTERN "trainer" EXCLUDE PATTERN "sqlite" EXCLUDE
  PATTERN "postgres" EXCLUDE PATTERN "frontends" EXCLUDE)

include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)
configure_package_config_file(cmake/penstockConfig.cmake.in
  ${PROJECT_BINARY_DIR}/penstockConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/penstockConfig.cmake
  ${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake
  DESTINATION ${package_folder})
install(EXPORT penstockTargets NAMESPACE penstock::
  DESTINATION ${package_folder})
