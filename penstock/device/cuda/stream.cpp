#include "penstock/device/cuda/stream.h"

#include <algorithm>

#include "penstock/device/cuda/call.h"
#include "penstock/device/cuda/event.h"
#include "penstock/device/cuda/gather_kernel.h"
#include "penstock/device/cuda/gather_plan.h"

namespace penstock::cuda {
namespace {

// Room for 256 batches of 256 rows on their way, or for 4 of the largest
// launches.
constexpr std::size_t kRingRows = 4 * kMostRowsPerLaunch;

}  // namespace

CudaStream::CudaStream(CudaDevice& device, cudaStream_t stream, bool owned)
    : Stream(stream), device_(device), stream_(stream), owned_(owned) {}

CudaStream::~CudaStream() {
  rows_.reset();  // waits for gathers: their row indices are in our memory
  OnDevice current(device_.number());
  // Other work that is queued is still done.
  if (owned_)
    check_quietly(cudaStreamDestroy(stream_), "cudaStreamDestroy",
                  device_.label());
}

void CudaStream::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 0) return;
  OnDevice current(device_.number());
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_),
        "cudaMemcpyAsync", device_.label());
}

void CudaStream::gather(const Gather& gather) {
  if (gather.rows.empty() || gather.fields.empty()) return;
  if (rows_ == nullptr) {
    row_memory_ = device_.allocate_pinned(kRingRows * sizeof(std::int64_t));
    rows_ = std::make_unique<RowRing>(std::span(
        reinterpret_cast<std::int64_t*>(row_memory_.data()), kRingRows));
  }
  OnDevice current(device_.number());
  std::size_t all = gather.rows.size();
  for (std::size_t first = 0; first < all; first += kMostRowsPerLaunch)
    launch(gather, first, std::min(kMostRowsPerLaunch, all - first));
}

void CudaStream::launch(const Gather& gather, std::size_t first,
                        std::size_t count) {
  const std::int64_t* staged = rows_->put(gather.rows.subspan(first, count));
  std::span<const GatherField> fields = gather.fields;
  try {
    while (!fields.empty()) {
      GatherLaunch planned = plan_launch(fields, first, count, staged,
                                         device_.processors(), gather.pieces);
      if (planned.blocks != 0)
        check(launch_gather(planned.work, planned.blocks, planned.near_bytes,
                            stream_),
              "launching a gather", device_.label());
      fields = fields.subspan(std::min<std::size_t>(fields.size(), kMostParts));
    }
    rows_->read_until(record_untimed());
  } catch (...) {  // the launches before it may still read the indices
    check_quietly(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
                  device_.label());
    throw;
  }
}

Event CudaStream::record() {
  return Event(std::make_shared<CudaEvent>(
      device_.events(), &device_.event_clock(), stream_, device_.label()));
}

Event CudaStream::record_untimed() {
  return Event(std::make_shared<CudaEvent>(device_.events(), nullptr, stream_,
                                           device_.label()));
}

void CudaStream::wait(const Event& event) {
  auto* ours = dynamic_cast<const CudaEvent*>(event.state());
  // The host waits for what the driver does not know.
  if (ours == nullptr) return event.wait();
  OnDevice current(device_.number());
  check(cudaStreamWaitEvent(stream_, ours->get(), 0), "cudaStreamWaitEvent",
        device_.label());
}

bool CudaStream::capturing() const {
  OnDevice current(device_.number());
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream_, &status), "cudaStreamIsCapturing",
        device_.label());
  return status != cudaStreamCaptureStatusNone;
}

void CudaStream::synchronize() {
  OnDevice current(device_.number());
  OutsideGraphs outside;
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
        device_.label());
}

std::unique_ptr<Stream> CudaDevice::make_stream() {
  OnDevice current(number());
  cudaStream_t stream = nullptr;
  // Non-blocking: it does not synchronise with the default stream, where
  // libtorch works unless it is set otherwise.
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
        "cudaStreamCreateWithFlags", label_);
  return std::make_unique<CudaStream>(*this, stream, true);
}

std::unique_ptr<Stream> CudaDevice::borrow_stream(void* handle) {
  return std::make_unique<CudaStream>(*this, static_cast<cudaStream_t>(handle),
                                      false);
}

}  // namespace penstock::cuda
