# Run when a test program has been built: writes LIST, by which ctest runs each
# suite of PROGRAM as PREFIX.SUITE. A process for each test would take half of the
# time of all tests, most of it under sanitizers.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests
  OUTPUT_VARIABLE listed RESULT_VARIABLE result TIMEOUT 60)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${result}\n${listed}")
endif()
string(REGEX MATCHALL "(^|\n)[^ \n]+\\.( |\n)" lines "${listed}")
# What needs a GPU, and is skipped without one: ctest -L gpu, or -LE gpu.
set(gpu "gpu|Cuda|GPU|TrainedOn")
set(tests "")
foreach(line ${lines})
  string(REGEX REPLACE "[ \n]" "" suite "${line}")
  string(REGEX REPLACE "\\.$" "" suite "${suite}")
  set(label "")
  if("${PREFIX}.${suite}" MATCHES "${gpu}")
    set(label " LABELS gpu")
  endif()
  string(APPEND tests "add_test([=[${PREFIX}.${suite}]=] [=[${PROGRAM}]=]"
    " [=[--gtest_filter=${suite}.*]=])\n"
    "set_tests_properties([=[${PREFIX}.${suite}]=] PROPERTIES TIMEOUT 600${label}"
    " WORKING_DIRECTORY [=[${FOLDER}]=])\n")
endforeach()
file(WRITE ${LIST} "${tests}")
