#include "penstock/device/cuda/nvjpeg.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/plugin.h"

namespace penstock::cuda {
namespace {

constexpr std::array kLibraries = {"libnvjpeg.so.13", "libnvjpeg.so.12"};

/// Where it may be, the nearest first. An empty folder stands for those in
/// which the system looks.
std::vector<std::filesystem::path> library_folders() {
  static const char here = 0;
  const std::filesystem::path ours = folder_of_library(&here);
  std::vector<std::filesystem::path> folders;
  if (!ours.empty()) folders.push_back(ours);
  // Packages of Python lie in one folder, and we are somewhere in one of them.
  for (std::filesystem::path up = ours; up.has_relative_path();
       up = up.parent_path())
    for (const char* package : {"cu13", "nvjpeg"})
      folders.push_back(up / "nvidia" / package / "lib");
  folders.emplace_back();
  folders.emplace_back("/usr/local/cuda/lib64");
  return folders;
}

/// Never closed.
void* opened_library() {
  std::string broken;
  for (const std::filesystem::path& folder : library_folders())
    for (const char* name : kLibraries) {
      const std::filesystem::path file = folder / name;
      if (void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
        return library;
      std::error_code unknown;
      if (!folder.empty() && std::filesystem::exists(file, unknown))
        broken = ::dlerror();
    }
  throw Error(ErrorKind::device,
              {.code = "device.no_nvjpeg",
               .what = "cannot decode pictures on a GPU",
               .where = kLibraries[0],
               .why = broken.empty() ? "nvJPEG, NVIDIA's decoder, was not found"
                                     : broken,
               .next = "install it: \"pip install nvidia-nvjpeg\" (for CUDA "
                       "12: nvidia-nvjpeg-cu12), or libnvjpeg of the CUDA "
                       "toolkit; or set \"decode\": \"host\""});
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr)
    throw Error(ErrorKind::device,
                {.code = "device.no_nvjpeg",
                 .what = "cannot decode pictures on a GPU",
                 .where = "libnvjpeg",
                 .why = std::string("the library has no function ") + name,
                 .next = "install the library of CUDA 12 or 13"});
}

NvjpegApi opened_api() {
  void* library = opened_library();
  NvjpegApi api{};
#define FIND(name) find(library, "nvjpeg" #name, api.name);
  PENSTOCK_NVJPEG_FUNCTIONS(FIND)
#undef FIND
  return api;
}

}  // namespace

std::string shown(NvjpegStatus status) {
  switch (status) {
    case NvjpegStatus::success:
      return "NVJPEG_STATUS_SUCCESS";
    case NvjpegStatus::invalid_parameter:
      return "NVJPEG_STATUS_INVALID_PARAMETER";
    case NvjpegStatus::bad_jpeg:
      return "NVJPEG_STATUS_BAD_JPEG";
    case NvjpegStatus::jpeg_not_supported:
      return "NVJPEG_STATUS_JPEG_NOT_SUPPORTED";
    case NvjpegStatus::allocator_failure:
      return "NVJPEG_STATUS_ALLOCATOR_FAILURE";
    case NvjpegStatus::execution_failed:
      return "NVJPEG_STATUS_EXECUTION_FAILED";
    case NvjpegStatus::arch_mismatch:
      return "NVJPEG_STATUS_ARCH_MISMATCH";
    case NvjpegStatus::incomplete_bitstream:
      return "NVJPEG_STATUS_INCOMPLETE_BITSTREAM";
  }
  return "nvJPEG status " + std::to_string(static_cast<int>(status));
}

const NvjpegApi& nvjpeg_api() {
  static const NvjpegApi api = opened_api();
  return api;
}

}  // namespace penstock::cuda
