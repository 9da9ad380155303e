# The C++ libraries of PyTorch (libtorch) as a Python wheel carries them, found
# without Python. TorchWheel_DIR is the folder that holds torch/ (an unpacked
# wheel, or the site-packages of a Python).
#
# Sets TorchWheel_FOUND, TorchWheel_VERSION and TorchWheel_LIBRARIES_DIR, and
# makes the target Torch::cpu. CUDA is no matter of building: libtorch_cuda.so
# is opened at run time.
find_path(TorchWheel_INCLUDE_DIR torch/headeronly/version.h
  PATHS "${TorchWheel_DIR}/torch/include" NO_DEFAULT_PATH NO_CACHE)
find_library(TorchWheel_CPU_LIBRARY torch_cpu
  PATHS "${TorchWheel_DIR}/torch/lib" NO_DEFAULT_PATH NO_CACHE)
find_library(TorchWheel_C10_LIBRARY c10
  PATHS "${TorchWheel_DIR}/torch/lib" NO_DEFAULT_PATH NO_CACHE)
if(TorchWheel_INCLUDE_DIR)
  file(STRINGS ${TorchWheel_INCLUDE_DIR}/torch/headeronly/version.h version
    REGEX "^ +\"[0-9.]+\"")
  string(REGEX MATCH "[0-9.]+" TorchWheel_VERSION "${version}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TorchWheel
  REQUIRED_VARS TorchWheel_CPU_LIBRARY TorchWheel_C10_LIBRARY
    TorchWheel_INCLUDE_DIR
  VERSION_VAR TorchWheel_VERSION HANDLE_VERSION_RANGE)

if(TorchWheel_FOUND AND NOT TARGET Torch::cpu)
  get_filename_component(TorchWheel_LIBRARIES_DIR "${TorchWheel_CPU_LIBRARY}"
    DIRECTORY)
  find_package(Threads REQUIRED)
  add_library(Torch::c10 SHARED IMPORTED)
  set_target_properties(Torch::c10 PROPERTIES
    IMPORTED_LOCATION ${TorchWheel_C10_LIBRARY})
  add_library(Torch::cpu SHARED IMPORTED)
  set_target_properties(Torch::cpu PROPERTIES
    IMPORTED_LOCATION ${TorchWheel_CPU_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${TorchWheel_INCLUDE_DIR})
  target_link_libraries(Torch::cpu INTERFACE Torch::c10 Threads::Threads)
  # libtorch_cpu.so finds cudart and cupti beside torch/ by a path of its own
  # when it is loaded, which the linker does not follow.
  target_link_options(Torch::cpu INTERFACE
    LINKER:--unresolved-symbols=ignore-in-shared-libs)
endif()
