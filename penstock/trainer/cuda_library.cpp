#include "penstock/trainer/cuda_library.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <torch/headeronly/version.h>

#include "penstock/base/base.h"

namespace penstock {
namespace {

std::string minor_version() {
  return std::to_string(TORCH_VERSION_MAJOR) + "." +
         std::to_string(TORCH_VERSION_MINOR);
}

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

const std::string& libtorch_release() {
  static const std::string release = "libtorch " + minor_version();
  return release;
}

PluginRequest cuda_plugin(const std::string& name, const char* entry,
                          const std::string& shown,
                          const std::string& headers) {
  return {
      .library = "libpenstock_" + name + "_" + minor_version() + ".so",
      .entry = entry,
      .shown = "the plugin for " + shown + " with " + libtorch_release(),
      .kind = ErrorKind::device,
      .code = "trainer",
      .install = "build Penstock with a PyTorch that has its CUDA packages (" +
                 headers + " next to torch)"};
}

}  // namespace penstock
