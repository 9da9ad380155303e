#include "penstock/device/cuda/device.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "penstock/device/cpu/host_bytes.h"
#include "penstock/device/cuda/call.h"
#include "penstock/device/cuda/kernels.h"
#include "penstock/device/shortage.h"

namespace penstock::cuda {

Answer ask_runtime() {
  Answer answer;
  // Without a driver it succeeds and says 0.
  if (cudaDriverGetVersion(&answer.driver) != cudaSuccess) answer.driver = 0;
  if (cudaRuntimeGetVersion(&answer.runtime) != cudaSuccess)
    answer.runtime = CUDART_VERSION;
  // When it fails it leaves the count as it was.
  cudaError_t result = cudaGetDeviceCount(&answer.devices);
  answer.old_driver = result == cudaErrorInsufficientDriver;
  if (result != cudaSuccess) answer.problem = cudaGetErrorName(result);
  cudaGetLastError();
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
    answer.visible = visible;
  return answer;
}

int default_number() {
  Answer answer = ask_runtime();
  int current = 0;
  if (cudaGetDevice(&current) != cudaSuccess) cudaGetLastError();
  if (current != 0 || answer.devices < 2) return current;
  const char* rank = std::getenv("LOCAL_RANK");
  int number = 0;
  if (rank == nullptr || *rank == '\0') return 0;
  auto [end, failed] = std::from_chars(rank, rank + std::strlen(rank), number);
  // What is no number is a GPU that is not there.
  return failed == std::errc() && *end == '\0' ? number : -1;
}

CudaDevice::Found CudaDevice::find(int number) {
  Answer answer = ask_runtime();
  if (!has_device(answer)) throw absence(answer);
  if (number < 0 || number >= answer.devices)
    throw no_such(number, answer.devices);
  std::string name = "cuda:" + std::to_string(number);
  cudaDeviceProp about{};
  check(cudaGetDeviceProperties(&about, number), "cudaGetDeviceProperties",
        name);
  name += ' ' + std::string(about.name);
  if (about.major < 8) throw too_old(name, about.major, about.minor);
  char bus[32] = {};
  check(cudaDeviceGetPCIBusId(bus, sizeof(bus), number),
        "cudaDeviceGetPCIBusId", name);
  // Creates the primary context, unless another library has done so.
  OnDevice current(number);
  check(load_kernels(), "loading the kernels' code", name);
  return {.facts = {.name = std::move(name),
                    .memory_kind = MemoryKind::cuda,
                    .number = number,
                    .pci_bus_id = bus},
          .processors = about.multiProcessorCount};
}

CudaDevice::CudaDevice(int number, DeviceAllocator allocator)
    : CudaDevice(find(number), std::move(allocator)) {}

CudaDevice::CudaDevice(Found found, DeviceAllocator allocator)
    : Device(std::move(found.facts)),
      processors_(found.processors),
      allocator_(std::move(allocator)),
      events_(number(), name()),
      event_clock_(events_, number(), name()) {
  event_clock_.anchor();
}

JpegDecoders& CudaDevice::jpeg_decoders() {
  Lock lock(decoders_mutex_);
  if (decoders_ == nullptr) decoders_ = std::make_unique<JpegDecoders>(*this);
  return *decoders_;
}

std::byte* CudaDevice::take(std::size_t bytes) {
  OnDevice current(number());
  OutsideGraphs outside;
  if (allocator_.allocate) return allocator_.allocate(bytes, number());
  void* data = nullptr;
  cudaError_t result = cudaMalloc(&data, bytes);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // or the next call would be blamed for it
    return nullptr;
  }
  check(result, "cudaMalloc", name());
  return static_cast<std::byte*>(data);
}

void CudaDevice::give_back(std::byte* memory) {
  OnDevice there(number());
  OutsideGraphs outside;
  if (allocator_.free)
    allocator_.free(memory, number());
  else
    check_quietly(cudaFree(memory), "cudaFree", name());
}

Buffer CudaDevice::allocate(std::size_t bytes) {
  std::byte* data = take(std::max<std::size_t>(bytes, 1));
  if (data == nullptr) throw shortage(name(), bytes, memory());
  return Buffer(data, bytes, MemoryKind::cuda,
                [this](std::byte* freed, std::size_t) { give_back(freed); });
}

Buffer CudaDevice::allocate_pinned(std::size_t bytes) {
  // Pinned pages are allocated at once, and the system kills a program that
  // takes more of them than it may have. So the limit is checked first.
  DeviceMemory host = host_memory();
  if (bytes > host.free) throw shortage(name() + ", pinned", bytes, host);
  OnDevice current(number());
  OutsideGraphs outside;
  void* data = nullptr;
  cudaError_t result =
      cudaHostAlloc(&data, std::max<std::size_t>(bytes, 1),
                    cudaHostAllocPortable | cudaHostAllocMapped);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw shortage(name() + ", pinned", bytes, host);
  }
  check(result, "cudaHostAlloc", name());
  return Buffer(static_cast<std::byte*>(data), bytes, MemoryKind::cuda_host,
                [this](std::byte* freed, std::size_t) {
                  OnDevice there(number());
                  OutsideGraphs outside;
                  check_quietly(cudaFreeHost(freed), "cudaFreeHost", name());
                });
}

DeviceMemory CudaDevice::memory() const {
  OnDevice current(number());
  OutsideGraphs outside;
  DeviceMemory memory;
  check(cudaMemGetInfo(&memory.free, &memory.total), "cudaMemGetInfo", name());
  if (allocator_.unused)
    memory.free =
        std::min(memory.total, memory.free + allocator_.unused(number()));
  return memory;
}

}  // namespace penstock::cuda
