#pragma once

#include <memory>
#include <span>
#include <vector>

#include "penstock/base/sync.h"
#include "penstock/device/cuda/nvjpeg_on_device.h"
#include "penstock/device/device.h"

namespace penstock::cuda {

/// What nvJPEG has for one call at a time, and memory for the images that it
/// makes. One thread.
class JpegDecoder {
 public:
  /// A window that has a file, and where its image goes: [height, width, 3].
  struct Job {
    const ResizeWindow* window;
    std::byte* to;
  };

  /// Throws Error(device).
  JpegDecoder(CudaDevice& device, const NvjpegOnDevice& nvjpeg);
  /// Its images have been read.
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Memory for images that nobody reads any more, of so many bytes.
  std::byte* room(std::size_t bytes);
  /// By its header.
  bool takes(std::span<const std::byte> file);
  /// Queues their decoding. After a failure some may be under way.
  NvjpegStatus decode(std::span<const Job> jobs, cudaStream_t stream);
  /// What reads the images is queued on this stream.
  void read_by(cudaStream_t stream);

 private:
  CudaDevice& device_;
  const NvjpegOnDevice& nvjpeg_;
  NvjpegState state_ = nullptr;
  NvjpegBitstream bitstream_ = nullptr;
  int batch_ = 0;  // that the state is set to
  Buffer images_;
  Event read_;
  // Of the call at hand.
  std::vector<const unsigned char*> data_;
  std::vector<std::size_t> lengths_;
  std::vector<NvjpegImage> targets_;
};

/// The decoders of a device. There are two, which work at the same time: beside
/// the training of a ResNet-50 an H100 decoded 9,600 photos of 500 x 375 a
/// second by one, 12,400 by two, and no more by six, but its training slowed
/// down. Thread-safe.
class JpegDecoders {
 public:
  /// Gives a decoder back.
  struct GiveBack {
    JpegDecoders* to = nullptr;
    void operator()(JpegDecoder* decoder) const {
      to->give_back(std::unique_ptr<JpegDecoder>(decoder));
    }
  };
  using Loan = std::unique_ptr<JpegDecoder, GiveBack>;

  /// Throws Error(device).
  explicit JpegDecoders(CudaDevice& device);
  ~JpegDecoders();

  /// Waits for one while others have both. Throws Error(device).
  Loan take();

 private:
  void give_back(std::unique_ptr<JpegDecoder> decoder);

  CudaDevice& device_;
  const NvjpegOnDevice nvjpeg_;
  Mutex mutex_;
  Condition given_back_;
  std::size_t made_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<JpegDecoder>> free_ PENSTOCK_GUARDED_BY(mutex_);
};

}  // namespace penstock::cuda
