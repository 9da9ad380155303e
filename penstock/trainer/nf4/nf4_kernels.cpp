#include "penstock/trainer/nf4/nf4_kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sin.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <vector>

#include "penstock/base/base.h"

namespace penstock {
namespace {

/// Of bitsandbytes 0.43 to 0.50: the values, which are its own where null; the
/// codes, the scales, the result, weights per block, weights, the stream.
using Dequantize = void (*)(float* values, std::uint8_t* codes, float* scales,
                            void* into, std::int32_t block, std::int32_t count,
                            void* stream);

constexpr std::array<std::pair<at::ScalarType, const char*>, 3> kNames = {
    {{at::kFloat, "cdequantize_blockwise_fp32_nf4"},
     {at::kHalf, "cdequantize_blockwise_fp16_nf4"},
     {at::kBFloat16, "cdequantize_blockwise_bf16_nf4"}}};

class BitsAndBytes final : public Nf4Kernels {
 public:
  explicit BitsAndBytes(std::array<Dequantize, kNames.size()> kernels)
      : kernels_(kernels) {}

  at::Tensor dequantized(const Nf4Weight& weight) const override {
    PENSTOCK_ASSERT(weight.size() <= std::numeric_limits<std::int32_t>::max(),
                    "a kernel counts weights in 32 bits");
    const at::Device device = weight.codes.device();
    const at::Tensor scales = weight_scales(weight);
    at::Tensor into = at::empty({weight.out, weight.in},
                                weight.codes.options().dtype(weight.dtype));
    const c10::Stream stream =
        c10::impl::getDeviceGuardImpl(device.type())->getStream(device);
    for (std::size_t i = 0; i < kNames.size(); ++i)
      if (kNames[i].first == weight.dtype)
        // They do not write to what they read.
        kernels_[i](nullptr,
                    const_cast<std::uint8_t*>(
                        weight.codes.const_data_ptr<std::uint8_t>()),
                    const_cast<float*>(scales.const_data_ptr<float>()),
                    into.mutable_data_ptr(), kNf4Block,
                    static_cast<std::int32_t>(weight.size()),
                    stream.native_handle());
    return into;
  }

 private:
  std::array<Dequantize, kNames.size()> kernels_;
};

/// Where the library may be, the newest release of CUDA first.
std::vector<std::filesystem::path> libraries() {
  if (const char* named = std::getenv("PENSTOCK_BITSANDBYTES"))
    return {std::filesystem::path(named)};
  const std::filesystem::path beside_torch =
      folder_of_library(&c10::impl::device_guard_impl_registry)
          .parent_path()
          .parent_path() /
      "bitsandbytes";
  std::vector<std::filesystem::path> found;
  std::error_code missing;
  for (const auto& entry :
       std::filesystem::directory_iterator(beside_torch, missing))
    if (entry.path().filename().string().starts_with("libbitsandbytes_cuda"))
      found.push_back(entry.path());
  std::ranges::sort(found, std::greater<>());
  return found;
}

std::unique_ptr<Nf4Kernels> find_kernels(at::Device device) {
  std::string why = "there is no bitsandbytes next to torch";
  for (const std::filesystem::path& library : libraries()) try {
      std::unique_ptr<Nf4Kernels> kernels = open_nf4_kernels(library.string());
      why = other_bits(*kernels, device);
      if (why.empty()) {
        log(LogLevel::info,
            "four-bit weights are dequantised by " + library.string());
        return kernels;
      }
      why = library.string() + ": " + why;
    } catch (const Error& error) {
      why = error.parts().where + ": " + error.parts().why;
    }
  log(LogLevel::warning,
      "four-bit weights are dequantised by operations of libtorch, which "
      "is slower than kernels: " +
          why);
  return nullptr;
}

}  // namespace

std::unique_ptr<Nf4Kernels> open_nf4_kernels(const std::string& library) {
  auto refuse = [&](std::string why) {
    throw Error(
        ErrorKind::device,
        {.code = "trainer.nf4_kernels",
         .what = "cannot use the kernels of bitsandbytes",
         .where = library,
         .why = std::move(why),
         .next = "install another release of bitsandbytes in the Python "
                 "environment of torch, or set PENSTOCK_BITSANDBYTES to the "
                 "path of libbitsandbytes_cuda*.so"});
  };
  // Never closed: kernels of it may be in flight.
  void* opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) refuse(::dlerror());
  std::array<Dequantize, kNames.size()> kernels{};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    kernels[i] =
        reinterpret_cast<Dequantize>(::dlsym(opened, kNames[i].second));
    if (kernels[i] == nullptr)
      refuse("the library has no " + std::string(kNames[i].second));
  }
  return std::make_unique<BitsAndBytes>(kernels);
}

// A layer with a partial block at its end, of numbers of both signs, and one of
// which nothing but zeros is left.
std::string other_bits(const Nf4Kernels& kernels, at::Device device) {
  const at::Tensor some = at::arange(67 * 31, at::kFloat).sin_();
  for (const auto& [type, name] : kNames)
    for (bool nested : {false, true})
      for (const at::Tensor& numbers : {some, some * 0}) {
        const at::Tensor first = numbers.to(type).reshape({67, 31});
        const at::Tensor expected =
            dequantized_on_host(nf4_weight(first, nested, at::kCPU));
        const at::Tensor found =
            kernels.dequantized(nf4_weight(first, nested, device));
        if (!found.to(at::kCPU).equal(expected))
          return std::string(name) + " gives other bits than the definition";
      }
  return "";
}

const Nf4Kernels* nf4_kernels(at::Device device) {
  static const std::unique_ptr<Nf4Kernels> kernels = find_kernels(device);
  return kernels.get();
}

}  // namespace penstock
