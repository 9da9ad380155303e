#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/cuda_standin/standin.h"

// GPUs, their memory and errors. Assumed beyond the manual, on the side that
// finds more mistakes:
// - Every call but those that ask for versions, counts, properties and errors
//   creates the primary context of the thread's current device (CUDA C++
//   Programming Guide 3.2.1 "Initialization"; since CUDA 12 cudaSetDevice()
//   does, too).
// - Memory that was just allocated, or given back, holds 0xDB.
// - cudaFree() and cudaFreeHost() wait for the device (Programming Guide
//   3.2.8.5.4 "Implicit Synchronization").
// - An address that a device may not touch is cudaErrorIllegalAddress, and the
//   process can use no device any more ("Error Checking": the error is sticky).

namespace cuda_standin {
namespace {

constexpr int kPoison = 0xDB;

struct Allocation {
  std::size_t bytes;
  int device;  // -1: pinned
};

struct Device {
  bool context = false;
  std::size_t used = 0;
};

struct State {
  Machine machine;
  std::vector<Device> devices{2};
  std::map<const std::byte*, Allocation> memory;
  std::map<std::string, std::map<int, cudaError_t>> failures;
  std::size_t pageable_copies = 0;
  std::size_t decoded_images = 0;
};

State& state() {
  static State* state = new State;  // streams may outlive main()
  return *state;
}

thread_local int current = 0;
thread_local cudaError_t last = cudaSuccess;

bool is_device(int device) {
  return device >= 0 && device < state().machine.devices;
}

cudaError_t asked_for(const std::string& function) {
  auto found = state().failures.find(function);
  if (found == state().failures.end()) return cudaSuccess;
  std::map<int, cudaError_t> later;
  cudaError_t now = cudaSuccess;
  for (auto [k, error] : found->second)
    if (k == 1)
      now = error;
    else
      later[k - 1] = error;
  found->second = std::move(later);
  return now;
}

cudaError_t allocate(void** memory, std::size_t bytes, int device) {
  auto* data = static_cast<std::byte*>(
      std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  if (data == nullptr) return ended(cudaErrorMemoryAllocation);
  std::memset(data, kPoison, bytes);
  state().memory[data] = {bytes, device};
  if (device >= 0)
    state().devices[static_cast<std::size_t>(device)].used += bytes;
  *memory = data;
  return cudaSuccess;
}

cudaError_t give_back(const char* function, void* memory, bool pinned) {
  if (cudaError_t error = begin_unsafe_call(function)) return error;
  if (memory == nullptr) return cudaSuccess;
  int device = 0;
  {
    std::lock_guard lock(lock_of_all());
    auto found = state().memory.find(static_cast<std::byte*>(memory));
    if (found == state().memory.end() || (found->second.device < 0) != pinned)
      return ended(cudaErrorInvalidValue);
    device = found->second.device;
  }
  for (int each = 0; each < machine().devices; ++each)
    if (pinned || each == device) synchronize_device(each);
  std::lock_guard lock(lock_of_all());
  auto found = state().memory.find(static_cast<std::byte*>(memory));
  if (device >= 0)
    state().devices[static_cast<std::size_t>(device)].used -=
        found->second.bytes;
  std::memset(memory, kPoison, found->second.bytes);
  state().memory.erase(found);
  std::free(memory);
  return cudaSuccess;
}

int primary_context_state(int device, unsigned* flags, int* active) {
  std::lock_guard lock(lock_of_all());
  if (!is_device(device)) return cudaErrorInvalidDevice;
  *flags = 0;
  *active = has_context(device) ? 1 : 0;
  return cudaSuccess;
}

}  // namespace

std::recursive_mutex& lock_of_all() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

void start(const Machine& machine) {
  stop_streams();
  std::lock_guard lock(lock_of_all());
  state().machine = machine;
  state().devices.assign(static_cast<std::size_t>(machine.devices), {});
  state().failures.clear();
  state().pageable_copies = 0;
  state().decoded_images = 0;
  current = 0;
  last = cudaSuccess;
}

Machine machine() {
  std::lock_guard lock(lock_of_all());
  return state().machine;
}

int current_device() { return current; }

bool has_context(int device) {
  std::lock_guard lock(lock_of_all());
  return state().devices[static_cast<std::size_t>(device)].context;
}

std::size_t used(int device) {
  std::lock_guard lock(lock_of_all());
  return state().devices[static_cast<std::size_t>(device)].used;
}

std::size_t pageable_copies() {
  std::lock_guard lock(lock_of_all());
  return state().pageable_copies;
}
void count_pageable_copy() {
  std::lock_guard lock(lock_of_all());
  ++state().pageable_copies;
}

std::size_t decoded_images() {
  std::lock_guard lock(lock_of_all());
  return state().decoded_images;
}
void count_decoded(std::size_t images) {
  std::lock_guard lock(lock_of_all());
  state().decoded_images += images;
}

void fail(const std::string& function, int k, cudaError_t error) {
  std::lock_guard lock(lock_of_all());
  state().failures[function][k] = error;
}

cudaError_t ended(cudaError_t error) {
  if (error != cudaSuccess) last = error;
  return error;
}

cudaError_t begin_call(const char* function, bool needs_context) {
  std::lock_guard lock(lock_of_all());
  if (cudaError_t error = asked_for(function)) return ended(error);
  if (!needs_context) return cudaSuccess;
  if (state().machine.driver < CUDART_VERSION)
    return ended(cudaErrorInsufficientDriver);
  if (!is_device(current)) return ended(cudaErrorNoDevice);
  state().devices[static_cast<std::size_t>(current)].context = true;
  return cudaSuccess;
}

cudaError_t begin_unsafe_call(const char* function) {
  if (cudaError_t error = begin_call(function)) return error;
  return ended(check_capture());
}

Where where_is(const void* at, std::size_t bytes, int* device) {
  std::lock_guard lock(lock_of_all());
  auto* first = static_cast<const std::byte*>(at);
  auto after = state().memory.upper_bound(first);
  if (after == state().memory.begin()) return Where::nowhere;
  const auto& [start, allocation] = *std::prev(after);
  if (first >= start + allocation.bytes && bytes > 0) return Where::nowhere;
  if (first + bytes > start + allocation.bytes) return Where::nowhere;
  if (device != nullptr && allocation.device >= 0) *device = allocation.device;
  return allocation.device < 0 ? Where::pinned : Where::device;
}

}  // namespace cuda_standin

using namespace cuda_standin;

std::size_t cuda_standin_used(int device) { return used(device); }
int cuda_standin_has_context(int device) { return has_context(device) ? 1 : 0; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    default:
      return "cudaErrorUnknown";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  return cudaGetErrorName(error);
}
cudaError_t cudaGetLastError() { return std::exchange(last, cudaSuccess); }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = machine().driver;
  return begin_call("cudaDriverGetVersion", false);
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return begin_call("cudaRuntimeGetVersion", false);
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (cudaError_t error = begin_call("cudaGetDeviceCount", false)) return error;
  if (machine().driver < CUDART_VERSION)
    return ended(cudaErrorInsufficientDriver);
  if (machine().devices == 0) return ended(cudaErrorNoDevice);
  *count = machine().devices;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* about, int device) {
  if (cudaError_t error = begin_call("cudaGetDeviceProperties", false))
    return error;
  std::lock_guard lock(lock_of_all());
  if (!is_device(device)) return ended(cudaErrorInvalidDevice);
  *about = {};
  std::snprintf(about->name, sizeof(about->name), "Stand-in");
  about->major = machine().major;
  about->multiProcessorCount = 4;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  if (cudaError_t error = begin_call("cudaDeviceGetPCIBusId", false))
    return error;
  std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02x:00.0",
                device + 1);
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  {
    std::lock_guard lock(lock_of_all());
    if (!is_device(device)) return ended(cudaErrorInvalidDevice);
  }
  current = device;
  return begin_call("cudaSetDevice");
}

cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return begin_call("cudaGetDevice", false);
}

cudaError_t cudaGetDriverEntryPointByVersion(
    const char* symbol, void** function, unsigned, unsigned long long,
    cudaDriverEntryPointQueryResult* result) {
  *result = cudaDriverEntryPointSuccess;
  if (std::strcmp(symbol, "cuDevicePrimaryCtxGetState") != 0)
    return ended(cudaErrorInvalidValue);
  *function = reinterpret_cast<void*>(&primary_context_state);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (cudaError_t error = begin_unsafe_call("cudaMalloc")) return error;
  std::lock_guard lock(lock_of_all());
  std::size_t used = state().devices[static_cast<std::size_t>(current)].used;
  if (bytes > state().machine.memory - used)
    return ended(cudaErrorMemoryAllocation);
  return allocate(memory, bytes, current);
}
cudaError_t cudaFree(void* memory) {
  return give_back("cudaFree", memory, false);
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (cudaError_t error = begin_unsafe_call("cudaHostAlloc")) return error;
  std::lock_guard lock(lock_of_all());
  return allocate(memory, bytes, -1);
}
cudaError_t cudaFreeHost(void* memory) {
  return give_back("cudaFreeHost", memory, true);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (cudaError_t error = begin_unsafe_call("cudaMemGetInfo")) return error;
  std::lock_guard lock(lock_of_all());
  *total = state().machine.memory;
  *free = *total - state().devices[static_cast<std::size_t>(current)].used;
  return cudaSuccess;
}
