#include "penstock/device/cuda/stream.h"

#include "penstock/device/cuda/call.h"
#include "penstock/device/cuda/event.h"

namespace penstock::cuda {
CudaStream::CudaStream(CudaDevice& device, cudaStream_t stream, bool owned)
    : Stream(stream),
      device_(device),
      stream_(stream),
      owned_{device, stream, owned},
      kernels_(device, stream) {}

CudaStream::Owned::~Owned() {
  OnDevice current(device.number());
  // Other work that is queued is still done.
  if (owned)
    check_quietly(cudaStreamDestroy(stream), "cudaStreamDestroy",
                  device.name());
}

void CudaStream::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 0) return;
  OnDevice current(device_.number());
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_),
        "cudaMemcpyAsync", device_.name());
}

void CudaStream::run(DeviceOperation operation) {
  std::visit([this](const auto& each) { kernels_.run(each); }, operation);
}

Event CudaStream::recorded(bool timed) {
  if (!timed) return device_.mark(stream_);
  return Event(std::make_shared<CudaEvent>(
      device_.events(), &device_.event_clock(), stream_, device_.name()));
}

// cudaStreamWaitEvent takes the work that the event stands for now. Recording
// the event again later, as the pool does, does not change what this stream
// waits for.
void CudaStream::wait(const Event& event) {
  auto* ours = dynamic_cast<const CudaEvent*>(event.state());
  // The host waits for what the driver does not know.
  if (ours == nullptr) return event.wait();
  OnDevice current(device_.number());
  check(cudaStreamWaitEvent(stream_, ours->get(), 0), "cudaStreamWaitEvent",
        device_.name());
}

bool CudaStream::capturing() const {
  OnDevice current(device_.number());
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream_, &status), "cudaStreamIsCapturing",
        device_.name());
  return status != cudaStreamCaptureStatusNone;
}

void CudaStream::synchronize() {
  OnDevice current(device_.number());
  OutsideGraphs outside;
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
        device_.name());
}

std::unique_ptr<Stream> CudaDevice::make_stream() {
  OnDevice current(number());
  cudaStream_t stream = nullptr;
  // Non-blocking: it does not synchronise with the default stream, where
  // libtorch works unless it is set otherwise.
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
        "cudaStreamCreateWithFlags", name());
  return std::make_unique<CudaStream>(*this, stream, true);
}

std::unique_ptr<Stream> CudaDevice::borrow_stream(void* handle) {
  return std::make_unique<CudaStream>(*this, static_cast<cudaStream_t>(handle),
                                      false);
}

}  // namespace penstock::cuda
