# One table at the end of configuring: what was found, what is left out, what
# that means. A line is added by penstock_found(WHAT ANSWER MEANING).
function(penstock_found what answer meaning)
  string(REPLACE ";" "," meaning "${meaning}")  # a list's own separator
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_FOUND
    "${what}" "${answer}" "${meaning}")
endfunction()

function(penstock_padded text width out)
  string(LENGTH "${text}" length)
  math(EXPR missing "${width} - ${length}")
  set(spaces " ")
  if(missing GREATER 0)
    string(REPEAT " " ${missing} spaces)
  endif()
  set(${out} "${text}${spaces}" PARENT_SCOPE)
endfunction()

function(penstock_print_found)
  get_property(cells GLOBAL PROPERTY PENSTOCK_FOUND)
  message(STATUS "Penstock ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, "
    "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}; found here:")
  while(cells)
    list(POP_FRONT cells what answer meaning)
    penstock_padded("${what}" 20 what)
    penstock_padded("${answer}" 5 answer)
    message(STATUS "  ${what}${answer}${meaning}")
  endwhile()
endfunction()
