#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include "penstock/trainer/cuda_library.h"
#include "penstock/trainer/torch_error.h"
#include "penstock/trainer/trainer.h"

namespace penstock {

std::string cuda_unavailable_reason() {
  return in_torch("querying libtorch for CUDA", [] {
    const CudaLibrary& cuda = cuda_library();
    return cuda.devices == 0 ? cuda.why : std::string();
  });
}

std::string build_info() {
  return in_torch("querying the features of libtorch", [] {
    const CudaLibrary& cuda = cuda_library();
    int threads = at::get_num_threads();
    return std::string("libtorch " TORCH_VERSION ", ") +
           std::to_string(threads) +
           (threads == 1 ? " thread, " : " threads, ") +
           (cuda.devices == 0
                ? "no CUDA"
                : "CUDA devices: " + std::to_string(cuda.devices));
  });
}

}  // namespace penstock
