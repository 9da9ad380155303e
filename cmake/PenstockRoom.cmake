# penstock_cold(TARGET): no sample passes through it, so that it is compiled with
# -O1, which takes a quarter less of the compiler's time.
function(penstock_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# penstock_room(NAME [COLD] SOURCES ... DEPS ... LIBS ... TESTS ...)
# A room of the core: the object library penstock_NAME and the test program
# NAME_tests. DEPS are the rooms whose headers it may include, LIBS are outside
# libraries. Only penstock_core is linked to a room: see PenstockCore.cmake.
function(penstock_room name)
  cmake_parse_arguments(ROOM "COLD" "" "SOURCES;DEPS;LIBS;TESTS" ${ARGN})
  set(target penstock_${name})
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_ROOMS ${name})
  add_library(${target} OBJECT ${ROOM_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  foreach(dep ${ROOM_DEPS})
    target_link_libraries(${target} PUBLIC penstock_${dep})
  endforeach()
  target_link_libraries(${target} PUBLIC ${ROOM_LIBS}
    PRIVATE penstock_warnings)
  penstock_headers(${target} room)
  if(ROOM_COLD)
    penstock_cold(${target})
  endif()
  if(ROOM_TESTS)
    penstock_tests(${name} SOURCES ${ROOM_TESTS})
  endif()
endfunction()

# Every plugin of the rooms, for whoever opens them while it runs.
add_custom_target(penstock_plugins)

# penstock_plugin(TARGET [HEAVY] [NOT_IN_WHEEL] [RPATH folders]): TARGET is a
# plugin of the program and of Python's package, which the core loads when it is
# needed. HEAVY: only the program as a whole waits for it, not every test. RPATH:
# where else the libraries are that an installed one needs. python/ installs it
# into the wheel.
function(penstock_plugin target)
  cmake_parse_arguments(PLUGIN "HEAVY;NOT_IN_WHEEL" "" "RPATH" ${ARGN})
  target_link_libraries(${target} PRIVATE penstock_core penstock_build_note)
  set_target_properties(${target} PROPERTIES
    INSTALL_RPATH "$ORIGIN;${PLUGIN_RPATH}")
  install(TARGETS ${target} LIBRARY
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/penstock)
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_PLUGINS ${target})
  if(NOT PLUGIN_NOT_IN_WHEEL)
    set_property(GLOBAL APPEND PROPERTY PENSTOCK_WHEEL_PLUGINS ${target})
  endif()
  if(NOT PLUGIN_HEAVY)
    add_dependencies(penstock_plugins ${target})
  endif()
endfunction()

# penstock_plugin_program(TARGET): TARGET is a program that a plugin starts, which
# lies beside it, in the wheel too.
function(penstock_plugin_program target)
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
  install(TARGETS ${target} RUNTIME
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/penstock)
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_WHEEL_PROGRAMS ${target})
endfunction()

# penstock_tests(NAME SOURCES ... DEPS ... HEADERS ...): the program NAME_tests,
# which is linked to the core and to the targets penstock_DEPS. HEADERS are
# precompiled for it, beside those that all tests share. Where
# PENSTOCK_TESTS_OF does not name it, it is built only when it is asked for.
function(penstock_tests name)
  if(NOT PENSTOCK_TESTS)
    return()
  endif()
  cmake_parse_arguments(T "" "" "SOURCES;DEPS;HEADERS" ${ARGN})
  add_executable(${name}_tests ${T_SOURCES})
  foreach(dep ${T_DEPS})
    target_link_libraries(${name}_tests PRIVATE penstock_${dep})
  endforeach()
  add_dependencies(${name}_tests penstock_plugins)
  target_link_libraries(${name}_tests PRIVATE penstock_core
    penstock_test_options
    GTest::gmock GTest::gtest_main)
  if(T_HEADERS)
    target_precompile_headers(${name}_tests
      PRIVATE ${penstock_test_headers} ${T_HEADERS})
  else()
    penstock_headers(${name}_tests test)
  endif()
  if(PENSTOCK_TESTS_OF AND NOT name IN_LIST PENSTOCK_TESTS_OF)
    set_target_properties(${name}_tests PROPERTIES EXCLUDE_FROM_ALL ON)
  else()
    penstock_suites(${name}_tests ${name})
  endif()
endfunction()

# penstock_suites(PROGRAM PREFIX): ctest runs each suite of it as PREFIX.SUITE.
function(penstock_suites program prefix)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${program}_suites.cmake)
  add_custom_command(TARGET ${program} POST_BUILD VERBATIM BYPRODUCTS ${list}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${program}>
      -DPREFIX=${prefix} -DFOLDER=${CMAKE_CURRENT_BINARY_DIR} -DLIST=${list}
      -P ${PROJECT_SOURCE_DIR}/cmake/list_suites.cmake)
  # Read by ctest, which fails where the program is not built.
  file(CONFIGURE OUTPUT ${program}_built.cmake CONTENT
    "if(EXISTS [=[@list@]=])\n  include([=[@list@]=])\nelse()\n\
  add_test(@program@_NOT_BUILT @program@_NOT_BUILT)\nendif()\n" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES
    ${CMAKE_CURRENT_BINARY_DIR}/${program}_built.cmake)
endfunction()

# penstock_test_data(FILES...): these see PENSTOCK_TEST_DATA, the folder
# tests/data. Only these, since ccache takes another clone's path for a change.
function(penstock_test_data)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_DEFINITIONS
    PENSTOCK_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
endfunction()
