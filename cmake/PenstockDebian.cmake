# Debian packages by `cpack` in a build folder whose prefix is /usr (the preset
# release): penstock, which is the program with its plugins, and libpenstock-dev,
# for C++. tools/release makes them.
set(PENSTOCK_MAINTAINER "Penstock maintainers <maintainers@penstock.invalid>"
  CACHE STRING "Whom the Debian packages name: Name <address>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME penstock)
set(CPACK_PACKAGE_CONTACT "${PENSTOCK_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
  "training-input engine that keeps a GPU busy")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL penstock dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PENSTOCK_PACKAGE_NAME penstock)
set(CPACK_DEBIAN_PENSTOCK_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PENSTOCK_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_PENSTOCK_DESCRIPTION
  "Penstock reads databases, tables, images, sound, text and arrays in native
threads, keeps prepared rows in the fastest memory that fits, and delivers
batches that are ready on the device. Where a training loop still waits, it
names the bottleneck and the setting to change.
.
This package holds the command 'penstock', its plugins and its man pages.")
# pyarrow's libraries, which are no Debian package: they are looked for when a
# Parquet file is opened.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
  ${CMAKE_LIBRARY_OUTPUT_DIRECTORY} ${PENSTOCK_ARROW_DIR}/pyarrow)

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libpenstock-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "penstock (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEV_DESCRIPTION
  "What find_package(penstock) needs in C++: the headers of the library that the
package penstock holds.")

# What Debian's policy asks of every package. SOURCE_DATE_EPOCH sets the date.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
string(TIMESTAMP year "%Y" UTC)
foreach(pair penstock:penstock dev:libpenstock-dev)
  string(REGEX MATCH "(.*):(.*)" pair ${pair})
  set(component ${CMAKE_MATCH_1})
  set(package ${CMAKE_MATCH_2})
  set(folder ${PROJECT_BINARY_DIR}/debian/${package})
  file(CONFIGURE OUTPUT ${folder}/copyright @ONLY CONTENT
    [=[Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: penstock

Files: *
Copyright: @year@ the authors of Penstock
License: Apache-2.0
 On Debian systems the whole text of the licence is the file
 /usr/share/common-licenses/Apache-2.0.
]=])
  file(CONFIGURE OUTPUT ${folder}/changelog.Debian @ONLY CONTENT
    [=[penstock (@PROJECT_VERSION@) stable; urgency=medium

  * What is new is in changelog.gz.

 -- @PENSTOCK_MAINTAINER@  @date@
]=])
  execute_process(COMMAND gzip -9nc ${folder}/changelog.Debian
    OUTPUT_FILE ${folder}/changelog.Debian.gz)
  execute_process(COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md
    OUTPUT_FILE ${folder}/changelog.gz)
  install(FILES ${folder}/copyright ${folder}/changelog.gz
      ${folder}/changelog.Debian.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
endforeach()
include(CPack)
