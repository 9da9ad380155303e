# Headers of others are compiled once per kind of target, not once per file.
# Ours are not among them: they change, and then everything would be compiled
# again. A file still includes what it uses: tools/check_includes.py looks.
set(penstock_standard_headers <algorithm> <array> <atomic> <chrono> <cmath>
  <condition_variable> <cstdint> <cstdlib> <cstring> <exception> <filesystem>
  <functional> <limits> <map> <memory> <mutex> <optional> <set> <span> <sstream>
  <stdexcept> <string> <string_view> <thread> <unordered_map> <utility>
  <variant> <vector>)
set(penstock_test_headers ${penstock_standard_headers}
  <gmock/gmock.h> <gtest/gtest.h>)

# clang writes the time into them, which ccache would take for a change.
if(CCACHE AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/room_headers.cpp CONTENT "")
add_library(penstock_room_headers OBJECT
  ${PROJECT_BINARY_DIR}/room_headers.cpp)
target_link_libraries(penstock_room_headers PRIVATE penstock_warnings)
target_precompile_headers(penstock_room_headers
  PRIVATE ${penstock_standard_headers})

if(PENSTOCK_TESTS)
  # What a test file itself compiles to need not be fast; what it tests is
  # compiled as always.
  add_library(penstock_test_options INTERFACE)
  target_link_libraries(penstock_test_options INTERFACE penstock_warnings)
  target_compile_options(penstock_test_options INTERFACE -O0)

  # A program, since a library's code is made position independent otherwise.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cpp
    CONTENT "int main() {}\n")
  add_executable(penstock_test_headers EXCLUDE_FROM_ALL
    ${PROJECT_BINARY_DIR}/test_headers.cpp)
  target_link_libraries(penstock_test_headers
    PRIVATE penstock_test_options GTest::gmock)
  target_precompile_headers(penstock_test_headers
    PRIVATE ${penstock_test_headers})
endif()

# penstock_headers(TARGET room|test): TARGET takes those of this kind.
function(penstock_headers target kind)
  target_precompile_headers(${target} REUSE_FROM penstock_${kind}_headers)
  if("${kind}" STREQUAL "room")
    penstock_together(${target})
  endif()
endfunction()

# Files of one folder are compiled together, twelve at a time: what they include is
# read once, and a whole build takes half the time. A changed file then takes some
# seconds more: -DPENSTOCK_TOGETHER=OFF compiles each alone.
option(PENSTOCK_TOGETHER "Compile the files of a folder together" ON)

# penstock_together(TARGET): those of TARGET are, those too that are added later.
function(penstock_together target)
  if(PENSTOCK_TOGETHER)
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # A type that only its file sees is included by the file that has all.
    target_compile_options(${target} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY
      [[${PROJECT_SOURCE_DIR}]] CALL penstock_group_files ${target})")
  endif()
endfunction()

function(penstock_group_files target)
  get_target_property(folder ${target} SOURCE_DIR)
  get_target_property(files ${target} SOURCES)
  list(FILTER files INCLUDE REGEX "[.]cpp$")
  foreach(file ${files})
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${folder} NORMALIZE)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR}
      OUTPUT_VARIABLE where)
    cmake_path(GET where PARENT_PATH where)
    string(MAKE_C_IDENTIFIER ${where} where)
    math(EXPR part "0${count_${where}} / 12")
    math(EXPR count_${where} "0${count_${where}} + 1")
    set_source_files_properties(${file} TARGET_DIRECTORY ${target}
      PROPERTIES UNITY_GROUP ${where}_${part})
  endforeach()
endfunction()
