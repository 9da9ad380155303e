# penstock_arrow_wheel(FOLDER RELEASE): the C++ libraries of Apache Arrow as
# pyarrow's wheel carries them, found without Python. FOLDER holds pyarrow/ (an
# unpacked wheel, or the site-packages of a Python). The names of the libraries
# end with the release, which RELEASE becomes: 2600 is 26.0, and a plugin runs
# with the one that it was built with. Empty: they are not all there.
#
# Makes the targets Arrow::arrow_2600, Arrow::parquet_2600 and Arrow::s3_2600,
# and sets Arrow_2600_VERSION and Arrow_2600_LIBRARIES.
function(penstock_arrow_wheel wheel release)
  set(folder ${wheel}/pyarrow)
  set(${release} "" PARENT_SCOPE)
  if(NOT EXISTS ${folder}/include/arrow/util/config.h)
    return()
  endif()
  file(STRINGS ${folder}/include/arrow/util/config.h versions
    REGEX "define ARROW_VERSION_STRING|define ARROW_SO_VERSION")
  string(REGEX MATCH "VERSION_STRING \"([0-9.]+)" found "${versions}")
  set(version ${CMAKE_MATCH_1})
  string(REGEX MATCH "SO_VERSION \"([0-9]+)" found "${versions}")
  set(number ${CMAKE_MATCH_1})
  if(NOT EXISTS ${folder}/libarrow.so.${number}
      OR NOT EXISTS ${folder}/libparquet.so.${number})
    return()
  endif()
  set(${release} ${number} PARENT_SCOPE)
  set(Arrow_${number}_VERSION ${version} PARENT_SCOPE)
  set(Arrow_${number}_LIBRARIES ${folder} PARENT_SCOPE)
  if(TARGET Arrow::arrow_${number})
    return()
  endif()
  find_package(Threads REQUIRED)
  # Headers of an imported target are system headers: their warnings are not
  # ours.
  add_library(Arrow::arrow_${number} SHARED IMPORTED)
  set_target_properties(Arrow::arrow_${number} PROPERTIES
    IMPORTED_LOCATION ${folder}/libarrow.so.${number}
    INTERFACE_INCLUDE_DIRECTORIES ${folder}/include)
  target_link_libraries(Arrow::arrow_${number} INTERFACE Threads::Threads)
  add_library(Arrow::parquet_${number} SHARED IMPORTED)
  set_target_properties(Arrow::parquet_${number} PROPERTIES
    IMPORTED_LOCATION ${folder}/libparquet.so.${number})
  target_link_libraries(Arrow::parquet_${number}
    INTERFACE Arrow::arrow_${number})
  # Up to 25 the file system for S3 is in libarrow itself.
  if(EXISTS ${folder}/libarrow_s3.so.${number})
    add_library(Arrow::s3_${number} SHARED IMPORTED)
    set_target_properties(Arrow::s3_${number} PROPERTIES
      IMPORTED_LOCATION ${folder}/libarrow_s3.so.${number})
  else()
    add_library(Arrow::s3_${number} INTERFACE IMPORTED)
  endif()
  target_link_libraries(Arrow::s3_${number} INTERFACE Arrow::arrow_${number})
endfunction()
