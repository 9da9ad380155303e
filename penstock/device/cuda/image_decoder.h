#pragma once

#include <memory>
#include <vector>

#include "penstock/device/cuda/argument_ring.h"
#include "penstock/device/cuda/device.h"
#include "penstock/device/cuda/nvjpeg_on_device.h"

namespace penstock::cuda {

/// Decodes the images of a stream's resizes that are in files. One thread. Its
/// destructor waits for the stream.
class ImageDecoder {
 public:
  ImageDecoder(CudaDevice& device, cudaStream_t stream)
      : device_(device), stream_(stream) {}
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  /// Windows of the resize from `first` on, as many as there is room for, with
  /// their images, whose decoding is queued.
  std::span<const ResizeWindow> decode(const Resize& resize, std::size_t first);
  /// All that reads the images of the last decode() has been queued.
  void read();

 private:
  /// A file and where its image goes.
  struct Job {
    const ResizeWindow* window;
    std::byte* to;
  };
  /// What nvJPEG has for a stream.
  struct State {
    explicit State(const NvjpegOnDevice& of) : on(of) {}
    ~State();
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    const NvjpegOnDevice& on;
    NvjpegState state = nullptr;
    NvjpegBitstream bitstream = nullptr;
  };

  /// Memory for images, and the decoder that fills it. The host waits for who
  /// read what is there: nvJPEG wants to be set to another number of images
  /// only when it has nothing to do, and may not wait for what a stream was
  /// given before (an H200 put later images over earlier ones). So there are
  /// two, used in turn.
  struct Half {
    Buffer images;
    Event read;
    std::unique_ptr<State> nvjpeg;  // made for the first file that it may take
    int batch = 0;                  // that it is set to
  };
  void make_room(Half& half, std::size_t bytes);
  void decode_here();
  bool takes(std::span<const std::byte> file);
  NvjpegStatus queue_batch();
  void decode_on_host(const Resize& resize, const Job& job);

  CudaDevice& device_;
  const cudaStream_t stream_;
  Half halves_[2];
  std::size_t at_ = 0;
  Buffer staged_;  // of images that the host has decoded
  std::unique_ptr<ArgumentRing> ring_;
  bool failed_ = false;  // once
  // Of the call at hand.
  std::vector<ResizeWindow> windows_;
  std::vector<Job> here_, on_host_;
  std::vector<const unsigned char*> data_;
  std::vector<std::size_t> lengths_;
  std::vector<NvjpegImage> targets_;
};

}  // namespace penstock::cuda
