#include "penstock/device/cuda/image_decoder.h"

#include <algorithm>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/device/cuda/call.h"
#include "penstock/device/cuda/event.h"

namespace penstock::cuda {

ImageDecoder::~ImageDecoder() {
  OnDevice current(device_.number());
  OutsideGraphs outside;
  check_quietly(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
                device_.label());
}

ImageDecoder::Images ImageDecoder::decode(const Resize& resize,
                                          std::size_t first) {
  const DecodedPart part = next_decoded(resize, first);
  OnDevice current(device_.number());
  OutsideGraphs outside;
  windows_.assign(part.windows.begin(), part.windows.end());
  there_.clear();
  on_host_.clear();
  try {
    place(resize, part);
    decode_there();
    for (const Job& job : on_host_) decode_on_host(resize, job);
  } catch (...) {
    read();
    throw;
  }
  return Images(*this);
}

/// Sorts the windows by who decodes them, and gives each its image.
void ImageDecoder::place(const Resize& resize, const DecodedPart& part) {
  std::byte *there = nullptr, *here = nullptr;
  if (part.there > 0) {
    decoder_ = device_.jpeg_decoders().take();
    there = decoder_->room(part.there);
  }
  // What was there is read by what is queued before.
  if (images_.size() < part.on_host) {
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
          device_.label());
    images_ = {};
    images_ = device_.allocate(std::max(kHostDecodedBytes, part.on_host));
  }
  here = images_.data();
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    const ResizeWindow& window = part.windows[w];
    if (window.file.empty()) continue;
    const bool device = decoded_there(resize, window);
    std::byte*& to = device ? there : here;
    windows_[w].image = to;
    windows_[w].file = {};
    (device ? there_ : on_host_).push_back({&window, to});
    to += decoded_bytes(resize, window);
  }
}

/// What nvJPEG does not take becomes the host's, all of a batch where it does
/// not say what.
void ImageDecoder::decode_there() {
  std::erase_if(there_, [&](const Job& job) {
    const bool taken = decoder_->takes(job.window->file);
    if (!taken) on_host_.push_back(job);
    return !taken;
  });
  if (there_.empty()) return;
  const NvjpegStatus status = decoder_->decode(there_, stream_);
  if (status == NvjpegStatus::success) return;
  if (status == NvjpegStatus::allocator_failure)
    check_nvjpeg(status, "nvjpegDecodeBatched", device_);
  cudaGetLastError();
  // What it has begun is not to be written over the host's images.
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
        device_.label());
  if (!std::exchange(failed_, true))
    log(LogLevel::warning, "nvJPEG failed on some of " +
                               std::to_string(there_.size()) + " pictures (" +
                               shown(status) + "): the host decodes them");
  on_host_.insert(on_host_.end(), there_.begin(), there_.end());
}

void ImageDecoder::decode_on_host(const Resize& resize, const Job& job) {
  const std::size_t bytes = job.window->image_bytes(resize.channels);
  if (staged_.size() < bytes) {
    ring_.reset();  // waits for its readers
    staged_ = {};
    staged_ = device_.allocate_pinned(std::max(kHostDecodedBytes, bytes));
    ring_ = std::make_unique<ArgumentRing>(
        std::span(staged_.data(), staged_.size()));
  }
  std::byte* image = ring_->take(bytes);
  resize.decode(job.window->file, resize.channels, image);
  check(cudaMemcpyAsync(job.to, image, bytes, cudaMemcpyDefault, stream_),
        "cudaMemcpyAsync", device_.label());
  ring_->read_until(Event(std::make_shared<CudaEvent>(
      device_.events(), nullptr, stream_, device_.label())));
}

/// All that reads the images is queued.
void ImageDecoder::read() noexcept {
  if (decoder_ == nullptr) return;
  try {
    decoder_->read_by(stream_);
  } catch (...) {
    log_exception(LogLevel::warning, "a stream's decoder waits for it");
    check_quietly(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
                  device_.label());
  }
  decoder_.reset();
}

}  // namespace penstock::cuda
