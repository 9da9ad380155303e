#include "penstock/device/cuda/jpeg_decoders.h"

#include <algorithm>
#include <utility>

#include "penstock/device/cuda/call.h"
#include "penstock/device/cuda/device.h"

namespace penstock::cuda {
namespace {

constexpr std::size_t kColours = 3;

}  // namespace

JpegDecoder::JpegDecoder(CudaDevice& device, const NvjpegOnDevice& nvjpeg)
    : device_(device), nvjpeg_(nvjpeg) {
  check_nvjpeg(nvjpeg.api().JpegStateCreate(nvjpeg.get(), &state_),
               "nvjpegJpegStateCreate", device);
  const NvjpegStatus made =
      nvjpeg.api().JpegStreamCreate(nvjpeg.get(), &bitstream_);
  if (made == NvjpegStatus::success) return;
  nvjpeg.api().JpegStateDestroy(state_);
  check_nvjpeg(made, "nvjpegJpegStreamCreate", device);
}

JpegDecoder::~JpegDecoder() {
  nvjpeg_.api().JpegStreamDestroy(bitstream_);
  nvjpeg_.api().JpegStateDestroy(state_);
}

// nvJPEG wants to be set to another number of images only when it has nothing
// to do, and may not wait for what a stream was given before (an H200 put later
// images over earlier ones): so the host waits.
std::byte* JpegDecoder::room(std::size_t bytes) {
  read_.wait();
  if (images_.size() < bytes) {
    images_ = {};
    images_ = device_.allocate(std::max(kDecodedBytes, bytes));
  }
  return images_.data();
}

bool JpegDecoder::takes(std::span<const std::byte> file) {
  int unsupported = 1;
  return nvjpeg_.api().JpegStreamParseHeader(
             nvjpeg_.get(), reinterpret_cast<const unsigned char*>(file.data()),
             file.size(), bitstream_) == NvjpegStatus::success &&
         nvjpeg_.api().DecodeBatchedSupported(nvjpeg_.get(), bitstream_,
                                              &unsupported) ==
             NvjpegStatus::success &&
         unsupported == 0;
}

NvjpegStatus JpegDecoder::decode(std::span<const Job> jobs,
                                 cudaStream_t stream) {
  data_.clear();
  lengths_.clear();
  targets_.clear();
  for (const auto& [window, to] : jobs) {
    data_.push_back(
        reinterpret_cast<const unsigned char*>(window->file.data()));
    lengths_.push_back(window->file.size());
    NvjpegImage target{};
    target.channel[0] = reinterpret_cast<unsigned char*>(to);
    target.pitch[0] = static_cast<std::size_t>(window->width) * kColours;
    targets_.push_back(target);
  }
  const int count = static_cast<int>(jobs.size());
  if (count != batch_) {
    batch_ = 0;
    const NvjpegStatus set = nvjpeg_.api().DecodeBatchedInitialize(
        nvjpeg_.get(), state_, count, 1, NvjpegFormat::rgb_interleaved);
    if (set != NvjpegStatus::success) return set;
    batch_ = count;
  }
  const NvjpegStatus queued =
      nvjpeg_.api().DecodeBatched(nvjpeg_.get(), state_, data_.data(),
                                  lengths_.data(), targets_.data(), stream);
  if (queued != NvjpegStatus::success) batch_ = 0;
  return queued;
}

void JpegDecoder::read_by(cudaStream_t stream) { read_ = device_.mark(stream); }

JpegDecoders::JpegDecoders(CudaDevice& device)
    : device_(device), nvjpeg_(device) {
  free_.reserve(kDecoders);  // giving one back must not fail
}

// Before what they are made of, with their device.
JpegDecoders::~JpegDecoders() {
  OnDevice current(device_.number());
  OutsideGraphs outside;
  Lock lock(mutex_);
  free_.clear();
}

// Invariant under the mutex: `made_` decoders are free or lent, at most
// kDecoders. One that is made is put among the free ones first, so a failure in
// between neither loses nor counts it twice.
JpegDecoders::Loan JpegDecoders::take() {
  Lock lock(mutex_);
  while (free_.empty() && made_ == kDecoders) given_back_.wait(mutex_);
  if (free_.empty()) {
    free_.push_back(std::make_unique<JpegDecoder>(device_, nvjpeg_));
    ++made_;
  }
  Loan loan(free_.back().release(), GiveBack{this});
  free_.pop_back();
  return loan;
}

void JpegDecoders::give_back(std::unique_ptr<JpegDecoder> decoder) {
  Lock lock(mutex_);
  free_.push_back(std::move(decoder));
  given_back_.notify_one();
}

}  // namespace penstock::cuda
