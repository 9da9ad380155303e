# What tells this build from others: the version, and a digest of all headers, the
# compiler and its options. The core knows it, and each plugin carries it in an
# ELF note; penstock/base/plugin_build.h reads that before a plugin is opened.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/penstock/*.h)
set(folder ${PROJECT_BINARY_DIR}/build_note)
set(name_build ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR}
  -DFOLDER=${folder} -DVERSION=${PROJECT_VERSION}
  "-DBUILT_BY=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${PENSTOCK_SANITIZE}"
  -P ${CMAKE_CURRENT_LIST_DIR}/name_build.cmake)
# Now, for tools that read the code without building it, and when headers change.
execute_process(COMMAND ${name_build} COMMAND_ERROR_IS_FATAL ANY)
add_custom_command(
  OUTPUT ${folder}/build_name.h ${folder}/build_note.cpp
  COMMAND ${name_build}
  DEPENDS ${headers} ${CMAKE_CURRENT_LIST_DIR}/name_build.cmake
  VERBATIM)
add_library(penstock_build_note OBJECT ${folder}/build_note.cpp)
target_include_directories(penstock_build_note INTERFACE ${folder})
