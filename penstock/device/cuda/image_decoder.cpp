#include "penstock/device/cuda/image_decoder.h"

#include <algorithm>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/device/cuda/call.h"
#include "penstock/device/cuda/decode_plan.h"
#include "penstock/device/cuda/event.h"

namespace penstock::cuda {
namespace {

constexpr std::int32_t kColours = 3;  // of an image that nvJPEG decodes
constexpr std::size_t kHalfBytes = kDecodedBytes / 2;

}  // namespace

ImageDecoder::State::~State() {
  if (bitstream != nullptr) on.api().JpegStreamDestroy(bitstream);
  if (state != nullptr) on.api().JpegStateDestroy(state);
}

ImageDecoder::~ImageDecoder() {
  OnDevice current(device_.number());
  OutsideGraphs outside;
  check_quietly(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
                device_.label());
  for (Half& half : halves_) half.nvjpeg.reset();
}

std::span<const ResizeWindow> ImageDecoder::decode(const Resize& resize,
                                                   std::size_t first) {
  const DecodedPart part = next_decoded(resize, first, kHalfBytes);
  at_ = 1 - at_;
  make_room(halves_[at_], part.bytes);
  here_.clear();
  on_host_.clear();
  std::byte* to = halves_[at_].images.data();
  windows_.assign(part.windows.begin(), part.windows.end());
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    const ResizeWindow& window = part.windows[w];
    if (window.file.empty()) continue;
    windows_[w].image = to;
    windows_[w].file = {};
    const bool here = !window.host_decodes && resize.channels == kColours;
    (here ? here_ : on_host_).push_back({&window, to});
    to += decoded_bytes(resize, window);
  }
  OnDevice current(device_.number());
  OutsideGraphs outside;
  decode_here();
  for (const Job& job : on_host_) decode_on_host(resize, job);
  return windows_;
}

void ImageDecoder::read() {
  halves_[at_].read = Event(std::make_shared<CudaEvent>(
      device_.events(), nullptr, stream_, device_.label()));
}

/// For so many bytes at least, which nobody reads any more.
void ImageDecoder::make_room(Half& half, std::size_t bytes) {
  half.read.wait();
  if (half.images.size() >= bytes) return;
  half.images = {};
  half.images = device_.allocate(std::max(kHalfBytes, bytes));
}

/// Queues the decoding of `here_`. What nvJPEG does not take becomes the
/// host's, all of a batch where it does not say what.
void ImageDecoder::decode_here() {
  std::erase_if(here_, [&](const Job& job) {
    const bool taken = takes(job.window->file);
    if (!taken) on_host_.push_back(job);
    return !taken;
  });
  if (here_.empty()) return;
  const NvjpegStatus status = queue_batch();
  if (status == NvjpegStatus::success) return;
  halves_[at_].batch = 0;
  if (status == NvjpegStatus::allocator_failure)
    check_nvjpeg(status, "nvjpegDecodeBatched", device_);
  cudaGetLastError();
  // What it has begun is not to be written over the host's images.
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize",
        device_.label());
  if (!std::exchange(failed_, true))
    log(LogLevel::warning, "nvJPEG failed on some of " +
                               std::to_string(here_.size()) + " pictures (" +
                               shown(status) + "): the host decodes them");
  on_host_.insert(on_host_.end(), here_.begin(), here_.end());
}

bool ImageDecoder::takes(std::span<const std::byte> file) {
  Half& half = halves_[at_];
  if (half.nvjpeg == nullptr) {
    half.nvjpeg = std::make_unique<State>(device_.nvjpeg());
    const NvjpegOnDevice& on = half.nvjpeg->on;
    check_nvjpeg(on.api().JpegStateCreate(on.get(), &half.nvjpeg->state),
                 "nvjpegJpegStateCreate", device_);
    check_nvjpeg(on.api().JpegStreamCreate(on.get(), &half.nvjpeg->bitstream),
                 "nvjpegJpegStreamCreate", device_);
  }
  const NvjpegOnDevice& on = half.nvjpeg->on;
  int unsupported = 1;
  return on.api().JpegStreamParseHeader(
             on.get(), reinterpret_cast<const unsigned char*>(file.data()),
             file.size(), half.nvjpeg->bitstream) == NvjpegStatus::success &&
         on.api().DecodeBatchedSupported(on.get(), half.nvjpeg->bitstream,
                                         &unsupported) ==
             NvjpegStatus::success &&
         unsupported == 0;
}

NvjpegStatus ImageDecoder::queue_batch() {
  Half& half = halves_[at_];
  data_.clear();
  lengths_.clear();
  targets_.clear();
  for (const Job& job : here_) {
    const ResizeWindow& window = *job.window;
    data_.push_back(reinterpret_cast<const unsigned char*>(window.file.data()));
    lengths_.push_back(window.file.size());
    NvjpegImage target{};
    target.channel[0] = reinterpret_cast<unsigned char*>(job.to);
    target.pitch[0] = static_cast<std::size_t>(window.width) * kColours;
    targets_.push_back(target);
  }
  const NvjpegOnDevice& on = half.nvjpeg->on;
  const int count = static_cast<int>(here_.size());
  if (count != half.batch) {
    const NvjpegStatus set = on.api().DecodeBatchedInitialize(
        on.get(), half.nvjpeg->state, count, 1, NvjpegFormat::rgb_interleaved);
    if (set != NvjpegStatus::success) return set;
    half.batch = count;
  }
  return on.api().DecodeBatched(on.get(), half.nvjpeg->state, data_.data(),
                                lengths_.data(), targets_.data(), stream_);
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

}  // namespace penstock::cuda
