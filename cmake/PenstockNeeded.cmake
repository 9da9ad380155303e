# What Penstock cannot be built without. All that is missing is told at once,
# by the names of Debian's packages.
function(penstock_stop_without)  # PACKAGES
  if(ARGN)
    list(JOIN ARGN " " packages)
    # What the kinds of sources need, as their descriptors say.
    file(GLOB descriptors
      ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../penstock/sources/*/descriptor.cpp)
    set(for_sources)
    foreach(descriptor ${descriptors})
      file(STRINGS ${descriptor} line REGEX "\\.to_build = ")
      if(line)
        string(REGEX REPLACE ".*\"(.*)\".*" "\\1" package "${line}")
        string(REPLACE " " ";" package "${package}")
        list(APPEND for_sources ${package})
      endif()
    endforeach()
    list(REMOVE_DUPLICATES for_sources)
    list(JOIN for_sources " " for_sources)
    # A line that begins with a space stays as it is.
    message(FATAL_ERROR "Nothing was compiled, because this is missing: "
      "${packages}. Install it, and try again (Debian, Ubuntu):\n"
      "  apt-get install ${packages}\n"
      "For all kinds of sources, which are left out otherwise:\n"
      "  apt-get install ${for_sources}\n"
      "A wheel needs no compiler: docs/how-to/install.md.")
  endif()
endfunction()

# Before the language is enabled: CMake's own words name no package. pip sets CXX
# to the compiler that Python was made with, which may be nowhere.
if(NOT CMAKE_CXX_COMPILER)
  separate_arguments(named UNIX_COMMAND "$ENV{CXX}")
  if(named)
    list(GET named 0 named)
    find_program(PENSTOCK_NAMED_COMPILER NAMES ${named} NO_CACHE)
    if(NOT PENSTOCK_NAMED_COMPILER)
      message(STATUS "CXX=$ENV{CXX} is nowhere: looking for another compiler")
      unset(ENV{CXX})
    endif()
  endif()
  find_program(PENSTOCK_ANY_COMPILER NAMES c++ g++ clang++ NO_CACHE)
  if(NOT PENSTOCK_NAMED_COMPILER AND NOT PENSTOCK_ANY_COMPILER)
    penstock_stop_without(g++ nlohmann-json3-dev libcli11-dev libsimdjson-dev
                          libyaml-dev)
  endif()
endif()

macro(penstock_needed)
  set(missing)
  find_package(nlohmann_json 3.11 QUIET)
  if(NOT nlohmann_json_FOUND)
    list(APPEND missing nlohmann-json3-dev)
  endif()
  find_package(CLI11 QUIET)
  if(NOT CLI11_FOUND)
    list(APPEND missing libcli11-dev)
  endif()
  find_package(simdjson QUIET)
  if(NOT simdjson_FOUND)
    list(APPEND missing libsimdjson-dev)
  endif()
  find_path(PENSTOCK_YAML_INCLUDE yaml.h)
  find_library(PENSTOCK_YAML_LIBRARY yaml)
  if(NOT PENSTOCK_YAML_INCLUDE OR NOT PENSTOCK_YAML_LIBRARY)
    list(APPEND missing libyaml-dev)
  endif()
  penstock_stop_without(${missing})
endmacro()
