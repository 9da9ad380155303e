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
                device_.name());
}

// The decoder stays taken until the caller has queued what reads the images,
// which the destructor of Images marks.
ImageDecoder::Images ImageDecoder::decode(const Resize& resize,
                                          std::size_t first) {
  const DecodedPart part = next_decoded(resize, first);
  OnDevice current(device_.number());
  OutsideGraphs outside;
  windows_.assign(part.windows.begin(), part.windows.end());
  there_.clear();
  on_host_.clear();
  // Before a decoder is taken, which others wait for.
  place(resize, part, false, host_room(part.on_host), on_host_);
  for (const Job& job : on_host_) decode_on_host(resize, job);
  if (part.there == 0) return Images(*this);
  decoder_ = device_.jpeg_decoders().take();
  try {
    place(resize, part, true, decoder_->room(part.there), there_);
    decode_there(resize);
  } catch (...) {
    read();
    throw;
  }
  return Images(*this);
}

/// Memory for images that the host decodes: those of before are read by what is
/// queued before.
std::byte* ImageDecoder::host_room(std::size_t bytes) {
  if (images_.size() < bytes) {
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
          device_.name());
    images_ = {};
    images_ = device_.allocate(std::max(kHostDecodedBytes, bytes));
  }
  return images_.data();
}

/// Gives the windows that are decoded there, or those that are not, an image
/// each, one behind the other.
void ImageDecoder::place(const Resize& resize, const DecodedPart& part,
                         bool there, std::byte* to, std::vector<Job>& jobs) {
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    const ResizeWindow& window = part.windows[w];
    if (window.file.empty() || decoded_there(resize, window) != there) continue;
    windows_[w].image = to;
    windows_[w].file = {};
    jobs.push_back({&window, to});
    to += decoded_bytes(resize, window);
  }
}

/// What nvJPEG does not take becomes the host's, all of a batch where it does
/// not say what.
void ImageDecoder::decode_there(const Resize& resize) {
  std::erase_if(there_, [&](const Job& job) {
    const bool taken = decoder_->takes(job.window->file);
    if (!taken) decode_on_host(resize, job);
    return !taken;
  });
  if (there_.empty()) return;
  const NvjpegStatus status = decoder_->decode(there_, stream_);
  if (status == NvjpegStatus::success) return;
  // What it has begun is not to be written over other images.
  cudaGetLastError();
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
        device_.name());
  if (status == NvjpegStatus::allocator_failure)
    check_nvjpeg(status, "nvjpegDecodeBatched", device_);
  if (!std::exchange(failed_, true))
    log(LogLevel::warning, "nvJPEG failed on some of " +
                               std::to_string(there_.size()) + " pictures (" +
                               shown(status) + "): the host decodes these");
  for (const Job& job : there_) decode_on_host(resize, job);
}

void ImageDecoder::decode_on_host(const Resize& resize, const Job& job) {
  const std::size_t bytes = job.window->image_bytes(resize.channels);
  staged_.grow(device_, std::max(kHostDecodedBytes, bytes));
  std::byte* image = staged_.ring->take(bytes);
  resize.decode(job.window->file, resize.channels, image);
  check(cudaMemcpyAsync(job.to, image, bytes, cudaMemcpyDefault, stream_),
        "cudaMemcpyAsync", device_.name());
  staged_.ring->read_until(device_.mark(stream_));
}

/// All that reads the images is queued.
void ImageDecoder::read() noexcept {
  if (decoder_ == nullptr) return;
  try {
    decoder_->read_by(stream_);
  } catch (...) {
    log_exception(LogLevel::warning, "a stream's decoder waits for it");
    check_quietly(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
                  device_.name());
  }
  decoder_.reset();
}

}  // namespace penstock::cuda
