#include "penstock/device/cuda/call.h"

#include "penstock/base/error.h"
#include "penstock/base/log.h"

namespace penstock::cuda {
namespace {

Error failed(cudaError_t result, std::string_view call,
             const std::string& device) {
  std::string said =
      std::string(cudaGetErrorName(result)) + ", " + cudaGetErrorString(result);
  bool memory = result == cudaErrorMemoryAllocation;
  return Error(
      memory ? ErrorKind::out_of_memory : ErrorKind::device,
      {.code = memory ? "device.out_of_memory" : "device.cuda",
       .what = std::string(call) + " failed",
       .where = "device '" + device + "'",
       .why = said + (memory ? "" : " (perhaps of work queued earlier)"),
       .next = memory
                   ? "use a smaller batch, less prefetch, or a cache tier "
                     "that is not on this device"
                   : "check the system's log (dmesg, Xid); compute-sanitizer "
                     "or CUDA_LAUNCH_BLOCKING=1 finds the failing call"});
}

}  // namespace

void check(cudaError_t result, std::string_view call,
           const std::string& device) {
  if (result == cudaSuccess) return;
  // CUDA keeps the last error until it is asked for: the next call, of ours or
  // of libtorch, shall not be blamed for this one.
  cudaGetLastError();
  throw failed(result, call, device);
}

void check_quietly(cudaError_t result, std::string_view call,
                   const std::string& device) noexcept {
  // At exit the driver may be unloaded before the last objects are destroyed.
  if (result == cudaSuccess || result == cudaErrorCudartUnloading) return;
  cudaGetLastError();
  try {
    log(LogLevel::warning, failed(result, call, device).what());
  } catch (const std::exception&) {
    // No memory for the message, and no other way to report it.
  }
}

namespace {

/// cuDevicePrimaryCtxGetState() of the driver's API creates nothing.
bool has_context(int device) {
  using State = int (*)(int, unsigned*, int*);
  static const State state = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    if (cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &found,
                                         CUDART_VERSION, cudaEnableDefault,
                                         &result) != cudaSuccess) {
      cudaGetLastError();
      found = nullptr;
    }
    return reinterpret_cast<State>(found);
  }();
  unsigned flags = 0;
  int active = 0;
  return state == nullptr || state(device, &flags, &active) != 0 || active != 0;
}

}  // namespace

// The device that was current is restored only if it has a context: making it
// current again would create one, with hundreds of MiB that the program never
// asked for.
OnDevice::OnDevice(int number) {
  int current = number;
  if (cudaGetDevice(&current) != cudaSuccess || current == number) return;
  if (has_context(current)) before_ = current;
  check(cudaSetDevice(number), "cudaSetDevice",
        "cuda:" + std::to_string(number));
}

OnDevice::~OnDevice() {
  if (before_ >= 0)
    check_quietly(cudaSetDevice(before_), "cudaSetDevice",
                  "cuda:" + std::to_string(before_));
}

// Each call swaps the thread's mode for the one that is kept here.
OutsideGraphs::OutsideGraphs() { cudaThreadExchangeStreamCaptureMode(&mode_); }
OutsideGraphs::~OutsideGraphs() { cudaThreadExchangeStreamCaptureMode(&mode_); }

}  // namespace penstock::cuda
