#include "penstock/trainer/cuda_library.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>

#include "penstock/base/base.h"

namespace penstock {
namespace {

CudaLibrary open_cuda_library() {
  // Beside the libtorch that is loaded. Global, because libraries that it opens
  // in turn look for its symbols. Never closed: libtorch registers its
  // functions for good.
  const std::filesystem::path folder =
      folder_of_library(&c10::impl::device_guard_impl_registry);
  if (::dlopen((folder / "libtorch_cuda.so").c_str(), RTLD_NOW | RTLD_GLOBAL) ==
      nullptr)
    return {.why = ::dlerror()};
  if (!c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA))
    return {.why = "libtorch_cuda.so was loaded, but adds no CUDA device"};
  int devices =
      c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->deviceCount();
  if (devices == 0) return {.why = "libtorch finds no driver or no device"};
  return {.devices = devices};
}

}  // namespace

const CudaLibrary& cuda_library() {
  static const CudaLibrary library = open_cuda_library();
  return library;
}

}  // namespace penstock
