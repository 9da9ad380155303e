# penstock_torch_wheel(FOLDER RELEASE): the C++ libraries of PyTorch (libtorch) as
# a Python wheel carries them, found without Python. FOLDER holds torch/ (an
# unpacked wheel, or the site-packages of a Python). RELEASE becomes "2.11": a
# trainer runs with the minor version that it was built with. Empty: there is no
# PyTorch 2.11 to 2.15 in FOLDER, or not all of it.
#
# Makes the target Torch::cpu_2.11, and sets Torch_2.11_VERSION, Torch_2.11_FOLDER,
# Torch_2.11_LIBRARIES and Torch_2.11_HEADERS. CUDA is no matter of building:
# libtorch_cuda.so is opened at run time.
function(penstock_torch_wheel wheel release)
  set(${release} "" PARENT_SCOPE)
  set(headers ${wheel}/torch/include)
  set(libraries ${wheel}/torch/lib)
  foreach(needed ${headers}/torch/headeronly/version.h
      ${libraries}/libtorch_cpu.so ${libraries}/libc10.so)
    if(NOT EXISTS ${needed})
      return()
    endif()
  endforeach()
  file(STRINGS ${headers}/torch/headeronly/version.h version
    REGEX "^ +\"[0-9.]+\"")
  string(REGEX MATCH "[0-9]+[.][0-9]+[0-9.]*" version "${version}")
  string(REGEX MATCH "^[0-9]+[.][0-9]+" number "${version}")
  if(NOT version VERSION_GREATER_EQUAL 2.11 OR NOT version VERSION_LESS 2.16)
    return()
  endif()
  set(${release} ${number} PARENT_SCOPE)
  set(Torch_${number}_VERSION ${version} PARENT_SCOPE)
  set(Torch_${number}_FOLDER ${wheel} PARENT_SCOPE)
  set(Torch_${number}_LIBRARIES ${libraries} PARENT_SCOPE)
  set(Torch_${number}_HEADERS ${headers} PARENT_SCOPE)
  if(TARGET Torch::cpu_${number})
    return()
  endif()
  find_package(Threads REQUIRED)
  add_library(Torch::c10_${number} SHARED IMPORTED)
  set_target_properties(Torch::c10_${number} PROPERTIES
    IMPORTED_LOCATION ${libraries}/libc10.so)
  add_library(Torch::cpu_${number} SHARED IMPORTED)
  set_target_properties(Torch::cpu_${number} PROPERTIES
    IMPORTED_LOCATION ${libraries}/libtorch_cpu.so
    INTERFACE_INCLUDE_DIRECTORIES ${headers})
  target_link_libraries(Torch::cpu_${number}
    INTERFACE Torch::c10_${number} Threads::Threads)
  # libtorch_cpu.so finds cudart and cupti beside torch/ by a path of its own
  # when it is loaded, which the linker does not follow.
  target_link_options(Torch::cpu_${number} INTERFACE
    LINKER:--unresolved-symbols=ignore-in-shared-libs)
endfunction()
