#pragma once

#include <memory>
#include <vector>

#include "penstock/device/cuda/argument_ring.h"
#include "penstock/device/cuda/decode_plan.h"
#include "penstock/device/cuda/device.h"
#include "penstock/device/cuda/jpeg_decoders.h"

namespace penstock::cuda {

/// Decodes the images of a stream's resizes that are in files: by a decoder of
/// the device, or by the host. One thread. Its destructor waits for the stream.
class ImageDecoder {
 public:
  /// Windows with their images, which are there for what is queued on the
  /// stream before this goes.
  class Images {
   public:
    explicit Images(ImageDecoder& of) : of_(of) {}
    ~Images() { of_.read(); }
    Images(const Images&) = delete;
    Images& operator=(const Images&) = delete;
    std::span<const ResizeWindow> windows() const { return of_.windows_; }

   private:
    ImageDecoder& of_;
  };

  ImageDecoder(CudaDevice& device, cudaStream_t stream)
      : device_(device), stream_(stream) {}
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  /// Queues the decoding of windows of the resize from `first` on, as many as
  /// there is room for.
  Images decode(const Resize& resize, std::size_t first);

 private:
  using Job = JpegDecoder::Job;
  std::byte* host_room(std::size_t bytes);
  void place(const Resize& resize, const DecodedPart& part, bool there,
             std::byte* to, std::vector<Job>& jobs);
  void decode_there(const Resize& resize);
  void decode_on_host(const Resize& resize, const Job& job);
  void read() noexcept;

  CudaDevice& device_;
  const cudaStream_t stream_;
  JpegDecoders::Loan decoder_;  // until its images are read
  Buffer images_;               // that the host decodes
  PinnedRing staged_;           // on their way
  bool failed_ = false;         // once
  // Of the call at hand.
  std::vector<ResizeWindow> windows_;
  std::vector<Job> there_, on_host_;
};

}  // namespace penstock::cuda
