# The man pages and completions, which the program itself tells: made beside the
# program, and installed below share/.
find_package(Python3 3.11 COMPONENTS Interpreter QUIET)
if(NOT Python3_Interpreter_FOUND OR PENSTOCK_SANITIZE)
  return()
endif()
set(manual ${PROJECT_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${manual}.made
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}
  COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/write_manual.py
    $<TARGET_FILE:penstock> ${manual}
  COMMAND ${CMAKE_COMMAND} -E touch ${manual}.made
  DEPENDS penstock ${PROJECT_SOURCE_DIR}/tools/write_manual.py
  COMMENT "Writing the man pages and completions" VERBATIM)
add_custom_target(penstock_manual ALL DEPENDS ${manual}.made)
add_dependencies(penstock_program penstock_manual)
install(DIRECTORY ${manual}/ DESTINATION ${CMAKE_INSTALL_DATADIR} OPTIONAL)
