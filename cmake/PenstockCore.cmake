# libpenstock_core.so: the rooms from base to run, once in each process. The
# program, the plugins, Python's module and the tests are linked to it, so that a
# type, an account or a log is the same for all of them.
set(core_rooms base tokenizer exec device sources transforms sampling cache
  monitor dataset loader models job advisor session report inspect run)
add_library(penstock_core SHARED)
foreach(room ${core_rooms})
  target_link_libraries(penstock_core PRIVATE penstock_${room})
endforeach()
add_library(penstock::penstock ALIAS penstock_core)
target_include_directories(penstock_core PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(penstock_core PUBLIC cxx_std_20)
target_link_libraries(penstock_core PUBLIC Threads::Threads
  PRIVATE penstock_build_note)
# Only what is ours is seen from outside: a process may hold other copies of the
# libraries whose templates we use. Calls within the core stay within it.
set(map ${CMAKE_CURRENT_LIST_DIR}/core.map)
target_link_options(penstock_core PRIVATE LINKER:--version-script=${map}
  LINKER:-Bsymbolic-functions)
set_target_properties(penstock_core PROPERTIES
  EXPORT_NAME penstock LINKER_LANGUAGE CXX LINK_DEPENDS ${map}
  INSTALL_RPATH $ORIGIN)
install(TARGETS penstock_core EXPORT penstockTargets LIBRARY
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/penstock)
