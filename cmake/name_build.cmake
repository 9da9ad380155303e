# Writes FOLDER/build_name.h and FOLDER/build_note.cpp: see PenstockBuild.cmake.
file(GLOB_RECURSE headers RELATIVE ${SOURCE} ${SOURCE}/penstock/*.h)
list(SORT headers)
set(all "${BUILT_BY}")
foreach(header ${headers})
  file(SHA256 ${SOURCE}/${header} digest)
  string(APPEND all "\n${header} ${digest}")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 12 digest)
set(name "${VERSION} (build ${digest})")
string(LENGTH "${name}" length)
math(EXPR length "${length} + 1")
file(CONFIGURE OUTPUT ${FOLDER}/build_name.h @ONLY CONTENT
  [=[#define PENSTOCK_BUILD_NAME "@name@"
]=])
# An ELF note: the sizes of its owner's name and of its content, its type, then
# both, each at a multiple of four bytes (System V ABI, "Note Section").
file(CONFIGURE OUTPUT ${FOLDER}/build_note.cpp @ONLY CONTENT
  [=[asm(R"note(.pushsection .note.penstock, "a", %note
  .balign 4
  .long 9, @length@, 1
  .asciz "penstock"
  .balign 4
  .asciz "@name@"
  .balign 4
  .popsection)note");
]=])
