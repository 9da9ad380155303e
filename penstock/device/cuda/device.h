#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "penstock/device/cuda/absence.h"
#include "penstock/device/cuda/event.h"
#include "penstock/device/cuda/jpeg_decoders.h"
#include "penstock/device/device.h"

namespace penstock::cuda {

/// Asks the runtime for devices. Never throws: a machine without a driver is
/// one of the answers.
Answer ask_runtime();

/// The GPU of a job that names none: the thread's current one where that is not
/// the first, else that of LOCAL_RANK, as torchrun sets it, else the first.
/// With one GPU in sight LOCAL_RANK is not looked at: each rank has its own.
int default_number();

/// A GPU by the CUDA runtime, in its primary context: the one that libtorch and
/// other users of the runtime have too, so that memory and streams can be
/// shared.
class CudaDevice final : public Device {
 public:
  /// Throws absence() without one. The thread's current device stays what it
  /// was, unless that has not been used yet.
  CudaDevice(int number, DeviceAllocator allocator);

  Buffer allocate(std::size_t bytes) override;
  Buffer allocate_pinned(std::size_t bytes) override;
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Stream> borrow_stream(void* handle) override;
  DeviceMemory memory() const override;

  int processors() const { return processors_; }
  EventPool& events() { return events_; }
  EventClock& event_clock() { return event_clock_; }
  /// Passes once a stream has done what it was given so far; knows no time.
  Event mark(cudaStream_t stream) {
    return Event(std::make_shared<CudaEvent>(events_, nullptr, stream, name()));
  }
  /// Made when it is first asked for. Throws Error(device).
  JpegDecoders& jpeg_decoders();
  void load_decoders() override { jpeg_decoders(); }
  /// Memory without an owner; null if none exists.
  std::byte* take(std::size_t bytes);
  void give_back(std::byte* memory);

 private:
  struct Found {
    DeviceFacts facts;  // its name: "cuda:0 NVIDIA H200"
    int processors;
  };
  static Found find(int number);
  CudaDevice(Found found, DeviceAllocator allocator);

  const int processors_;
  const DeviceAllocator allocator_;
  EventPool events_;
  EventClock event_clock_;
  Mutex decoders_mutex_;
  // They give their memory back, so they go first.
  std::unique_ptr<JpegDecoders> decoders_ PENSTOCK_GUARDED_BY(decoders_mutex_);
};

}  // namespace penstock::cuda
