#include "penstock/device/cuda/nvjpeg_on_device.h"

#include "penstock/base/log.h"
#include "penstock/device/cuda/call.h"
#include "penstock/device/cuda/device.h"

namespace penstock::cuda {
namespace {

// What throws would go through frames of nvJPEG.
template <class Take>
int taken(void** memory, Take take) {
  *memory = nullptr;
  try {
    *memory = take();
  } catch (...) {
    log_exception(LogLevel::warning, "nvJPEG gets no memory");
  }
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

int take_there(void* context, void** memory, std::size_t bytes, cudaStream_t) {
  return taken(memory,
               [&] { return static_cast<CudaDevice*>(context)->take(bytes); });
}

int take_pinned(void* context, void** memory, std::size_t bytes, cudaStream_t) {
  return taken(memory, [&] {
    Buffer buffer = static_cast<CudaDevice*>(context)->allocate_pinned(bytes);
    std::byte* data = buffer.data();
    buffer.release();
    return data;
  });
}

// Work that is queued may still use what is given back.
// The allocator may hand it to another stream at once, so the host waits for
// the one that nvJPEG names.
template <class Give>
int given_back(void* context, void* memory, cudaStream_t stream, Give give) {
  auto& device = *static_cast<CudaDevice*>(context);
  OnDevice current(device.number());
  OutsideGraphs outside;
  check_quietly(cudaStreamSynchronize(stream), "cudaStreamSynchronize",
                device.name());
  if (memory != nullptr) give(device);
  return cudaSuccess;
}

int give_back_there(void* context, void* memory, std::size_t,
                    cudaStream_t stream) {
  return given_back(context, memory, stream, [&](CudaDevice& device) {
    device.give_back(static_cast<std::byte*>(memory));
  });
}

int give_back_pinned(void* context, void* memory, std::size_t,
                     cudaStream_t stream) {
  return given_back(context, memory, stream, [&](CudaDevice& device) {
    check_quietly(cudaFreeHost(memory), "cudaFreeHost", device.name());
  });
}

}  // namespace

void check_nvjpeg(NvjpegStatus status, const char* call,
                  const CudaDevice& device) {
  if (status == NvjpegStatus::success) return;
  cudaGetLastError();  // or the next call would be blamed for it
  const bool memory = status == NvjpegStatus::allocator_failure;
  throw Error(
      memory ? ErrorKind::out_of_memory : ErrorKind::device,
      {.code = memory ? "device.out_of_memory" : "device.nvjpeg",
       .what = std::string(call) + " failed",
       .where = "device '" + device.name() + "'",
       .why = shown(status),
       .next = memory ? "use a smaller batch, fewer workers, or a cache tier "
                        "that is not on this device"
                      : "set \"decode\": \"host\" to decode pictures on the "
                        "host"});
}

NvjpegOnDevice::NvjpegOnDevice(CudaDevice& device)
    : device_(device),
      api_(nvjpeg_api()),
      memory_{take_there, give_back_there, &device},
      pinned_{take_pinned, give_back_pinned, &device} {
  OnDevice current(device.number());
  OutsideGraphs outside;
  const auto create = [&](NvjpegBackend backend) {
    return api_.CreateExV2(backend, &memory_, &pinned_, kNvjpegSmoothColours,
                           &handle_);
  };
  const NvjpegStatus engines = create(NvjpegBackend::engines);
  std::string how = "with its decode engines";
  if (engines != NvjpegStatus::success) {
    cudaGetLastError();
    check_nvjpeg(create(NvjpegBackend::processors), "nvjpegCreateExV2", device);
    how = "without engines (" + shown(engines) + ")";
  }
  log(LogLevel::info, device.name() + " decodes JPEG by nvJPEG, " + how);
}

NvjpegOnDevice::~NvjpegOnDevice() {
  OnDevice current(device_.number());
  OutsideGraphs outside;
  api_.Destroy(handle_);
}

}  // namespace penstock::cuda
