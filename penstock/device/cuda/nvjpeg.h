#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <string>

// What we call of nvJPEG, as declarations of our own: it is opened where it is
// there and no header of it is needed. Names, values and meanings are those of
// the manual (nvJPEG 12 and 13, sections 2.2 and 2.3), but without its prefix.
// Where the toolkit has nvjpeg.h, nvjpeg_abi_test.cpp compares.
namespace penstock::cuda {

/// nvjpegStatus_t (2.4, "API Return Codes").
enum class NvjpegStatus : int {
  success = 0,
  invalid_parameter = 2,
  bad_jpeg = 3,
  jpeg_not_supported = 4,
  allocator_failure = 5,
  execution_failed = 6,
  arch_mismatch = 7,
  incomplete_bitstream = 10,
};
/// "NVJPEG_STATUS_BAD_JPEG", of those that are named here; else its number.
std::string shown(NvjpegStatus status);

/// nvjpegBackend_t (2.2.1), NVJPEG_BACKEND_GPU_HYBRID and _HARDWARE. `engines`:
/// beside the GPU's processors, for baseline files with one scan, but of 4:1:0
/// and 4:1:1. `processors`: these read Huffman codes, too, of more than 50
/// baseline files.
enum class NvjpegBackend : int { processors = 2, engines = 3 };
/// NVJPEG_OUTPUT_RGBI of nvjpegOutputFormat_t (2.1.1): [height, width, 3], in
/// the first channel of NvjpegImage.
enum class NvjpegFormat : int { rgb_interleaved = 5 };
/// NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION (2.2.17): colours are smoothed
/// between pixels, as libjpeg does.
inline constexpr unsigned kNvjpegSmoothColours = 1U << 5;

struct NvjpegHandleTag;
struct NvjpegStateTag;
struct NvjpegBitstreamTag;
/// Thread-safe, as opposed to the others (1.3). All belong to the device that
/// was current when they were made (1.4).
using NvjpegHandle = NvjpegHandleTag*;
using NvjpegState = NvjpegStateTag*;
using NvjpegBitstream = NvjpegBitstreamTag*;

/// nvjpegImage_t (2.2.9).
struct NvjpegImage {
  std::array<unsigned char*, 4> channel;
  std::array<std::size_t, 4> pitch;
};

/// nvjpegDevAllocatorV2_t and nvjpegPinnedAllocatorV2_t (2.2.11, 2.2.8): not 0
/// is a failure.
struct NvjpegAllocator {
  int (*allocate)(void* context, void** memory, std::size_t bytes,
                  cudaStream_t stream);
  int (*free)(void* context, void* memory, std::size_t bytes,
              cudaStream_t stream);
  void* context;
};

/// The functions, by their names in the library without "nvjpeg" (2.3).
struct NvjpegApi {
  /// Takes no null for an allocator.
  NvjpegStatus (*CreateExV2)(NvjpegBackend backend, NvjpegAllocator* device,
                             NvjpegAllocator* pinned, unsigned flags,
                             NvjpegHandle* handle);
  NvjpegStatus (*Destroy)(NvjpegHandle handle);
  NvjpegStatus (*JpegStateCreate)(NvjpegHandle handle, NvjpegState* state);
  NvjpegStatus (*JpegStateDestroy)(NvjpegState state);
  NvjpegStatus (*JpegStreamCreate)(NvjpegHandle handle,
                                   NvjpegBitstream* bitstream);
  NvjpegStatus (*JpegStreamDestroy)(NvjpegBitstream bitstream);
  /// Does not keep the data.
  NvjpegStatus (*JpegStreamParseHeader)(NvjpegHandle handle,
                                        const unsigned char* data,
                                        std::size_t length,
                                        NvjpegBitstream bitstream);
  /// `unsupported` 0: DecodeBatched() takes it.
  NvjpegStatus (*DecodeBatchedSupported)(NvjpegHandle handle,
                                         NvjpegBitstream bitstream,
                                         int* unsupported);
  /// Before the first batch of a size, and again once one has failed; while no
  /// batch of the state is under way.
  NvjpegStatus (*DecodeBatchedInitialize)(NvjpegHandle handle,
                                          NvjpegState state, int images,
                                          int most_threads,
                                          NvjpegFormat format);
  /// `data` is host memory, `images` the device's.
  NvjpegStatus (*DecodeBatched)(NvjpegHandle handle, NvjpegState state,
                                const unsigned char* const* data,
                                const std::size_t* lengths, NvjpegImage* images,
                                cudaStream_t stream);
};
/// Its functions, for what is done to each of them.
#define PENSTOCK_NVJPEG_FUNCTIONS(each)                                       \
  each(CreateExV2) each(Destroy) each(JpegStateCreate) each(JpegStateDestroy) \
      each(JpegStreamCreate) each(JpegStreamDestroy)                          \
          each(JpegStreamParseHeader) each(DecodeBatchedSupported)            \
              each(DecodeBatchedInitialize) each(DecodeBatched)

/// The library, opened once: of CUDA 13 or 12, next to us, as pip installs it
/// beside a package, where the system looks, or in /usr/local/cuda. Throws
/// Error(device), device.no_nvjpeg, that says what to install.
const NvjpegApi& nvjpeg_api();

}  // namespace penstock::cuda
