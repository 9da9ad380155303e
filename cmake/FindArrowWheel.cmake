# The C++ libraries of Apache Arrow as pyarrow's wheel carries them, found
# without Python. ArrowWheel_DIR is the folder that holds pyarrow/ (an unpacked
# wheel, or the site-packages of a Python). Their names end with the release:
# 2600 is 26.0, and a plugin runs with the one that it was built with.
#
# Sets ArrowWheel_FOUND, ArrowWheel_VERSION and ArrowWheel_LIBRARIES_DIR, and
# makes the targets Arrow::arrow and Arrow::parquet, and Arrow::s3 where its
# library is there.
find_path(ArrowWheel_INCLUDE_DIR arrow/util/config.h
  PATHS "${ArrowWheel_DIR}/pyarrow/include" NO_DEFAULT_PATH NO_CACHE)
if(ArrowWheel_INCLUDE_DIR)
  file(STRINGS ${ArrowWheel_INCLUDE_DIR}/arrow/util/config.h versions
    REGEX "define ARROW_VERSION_STRING|define ARROW_SO_VERSION")
  string(REGEX MATCH "VERSION_STRING \"([0-9.]+)" found "${versions}")
  set(ArrowWheel_VERSION ${CMAKE_MATCH_1})
  string(REGEX MATCH "SO_VERSION \"([0-9]+)" found "${versions}")
  set(soname ${CMAKE_MATCH_1})
endif()
set(folder "${ArrowWheel_DIR}/pyarrow")
if(EXISTS "${folder}/libarrow.so.${soname}")
  set(ArrowWheel_LIBRARY "${folder}/libarrow.so.${soname}")
endif()
if(EXISTS "${folder}/libparquet.so.${soname}")
  set(ArrowWheel_PARQUET_LIBRARY "${folder}/libparquet.so.${soname}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ArrowWheel
  REQUIRED_VARS ArrowWheel_LIBRARY ArrowWheel_PARQUET_LIBRARY
    ArrowWheel_INCLUDE_DIR
  VERSION_VAR ArrowWheel_VERSION)

if(ArrowWheel_FOUND AND NOT TARGET Arrow::arrow)
  set(ArrowWheel_LIBRARIES_DIR ${folder})
  find_package(Threads REQUIRED)
  # Headers of an imported target are system headers: their warnings are not
  # ours.
  add_library(Arrow::arrow SHARED IMPORTED)
  set_target_properties(Arrow::arrow PROPERTIES
    IMPORTED_LOCATION ${ArrowWheel_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${ArrowWheel_INCLUDE_DIR})
  target_link_libraries(Arrow::arrow INTERFACE Threads::Threads)
  add_library(Arrow::parquet SHARED IMPORTED)
  set_target_properties(Arrow::parquet PROPERTIES
    IMPORTED_LOCATION ${ArrowWheel_PARQUET_LIBRARY})
  target_link_libraries(Arrow::parquet INTERFACE Arrow::arrow)
  if(EXISTS "${folder}/libarrow_s3.so.${soname}")
    add_library(Arrow::s3 SHARED IMPORTED)
    set_target_properties(Arrow::s3 PROPERTIES
      IMPORTED_LOCATION "${folder}/libarrow_s3.so.${soname}")
    target_link_libraries(Arrow::s3 INTERFACE Arrow::arrow)
  endif()
endif()
