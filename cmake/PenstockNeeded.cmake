# What Penstock cannot be built without. All that is missing is told at once,
# by the names of Debian's packages.
function(penstock_stop_without)  # PACKAGES
  if(ARGN)
    list(JOIN ARGN " " packages)
    message(FATAL_ERROR "Penstock cannot be built here without ${packages} "
      "(Debian, Ubuntu: apt-get install ${packages}; elsewhere what the like "
      "is called). SQLite and PostgreSQL sources also need libsqlite3-dev and "
      "libpq-dev. Python's package needs no compiler when it is installed from "
      "its wheel.")
  endif()
endfunction()

# Before the language is enabled: CMake's own words name no package.
if(NOT CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
  find_program(PENSTOCK_ANY_COMPILER NAMES c++ g++ clang++)
  mark_as_advanced(PENSTOCK_ANY_COMPILER)
  if(NOT PENSTOCK_ANY_COMPILER)
    penstock_stop_without(g++ nlohmann-json3-dev libcli11-dev libsimdjson-dev)
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
  penstock_stop_without(${missing})
endmacro()
