# What `cmake --install` leaves for find_package(penstock): the core, the faces
# of its rooms with the headers that they include, the plugins.
get_property(rooms GLOBAL PROPERTY PENSTOCK_ROOMS)
install(CODE "
  set(ROOMS \"${rooms}\")
  set(SOURCE \"${PROJECT_SOURCE_DIR}\")
  set(INCLUDE \"${CMAKE_INSTALL_INCLUDEDIR}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/InstallHeaders.cmake\")"
  COMPONENT dev)

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
  DESTINATION ${package_folder} COMPONENT dev)
install(EXPORT penstockTargets NAMESPACE penstock::
  DESTINATION ${package_folder} COMPONENT dev)
