#include "penstock/device/cuda/nvjpeg.h"

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tests/cuda_standin/standin.h"

// It needs what stands above.
#include <jpeglib.h>

// A stand-in for nvJPEG, by libjpeg: what the device `cuda` calls of it, in the
// library that it opens. A batch is decoded on the thread of its stream, from
// where the files are then. Assumed beyond the manual:
// - Errors of a header, and files that are not supported, are found by the
//   calls; damage within the data is not.
// - Memory is taken by the first batch and by larger ones, and is given back
//   when the state is destroyed.
// - A handle is used while its device is current (1.4 "Multi-GPU support").

using namespace penstock::cuda;
using cuda_standin::Where;

struct penstock::cuda::NvjpegHandleTag {
  int device;
  NvjpegAllocator memory, pinned;
};
struct penstock::cuda::NvjpegStateTag {
  NvjpegHandle handle;
  int images = 0;
  void *memory = nullptr, *pinned = nullptr;
};
struct penstock::cuda::NvjpegBitstreamTag {
  bool supported = false;
};

namespace {

constexpr std::size_t kMemory = 4096;  // of a state

struct ErrorManager : jpeg_error_mgr {
  std::jmp_buf failed;
};
[[noreturn]] void fail(j_common_ptr jpeg) {
  std::longjmp(static_cast<ErrorManager*>(jpeg->err)->failed, 1);
}
void say_nothing(j_common_ptr) {}

class Jpeg {
 public:
  Jpeg() {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = fail;
    errors_.output_message = say_nothing;
    jpeg_create_decompress(&jpeg_);
  }
  ~Jpeg() { jpeg_destroy_decompress(&jpeg_); }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  bool read_header(const unsigned char* data, std::size_t length) {
    if (setjmp(errors_.failed) != 0) return false;
    jpeg_mem_src(&jpeg_, data, length);
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }
  /// Baseline, three colours, 4:4:4, 4:2:2, 4:4:0 or 4:2:0.
  bool supported() const {
    if (jpeg_.progressive_mode || jpeg_.num_components != 3) return false;
    const jpeg_component_info* parts = jpeg_.comp_info;
    return parts[0].h_samp_factor <= 2 && parts[0].v_samp_factor <= 2 &&
           parts[1].h_samp_factor == 1 && parts[1].v_samp_factor == 1;
  }
  bool decode(const NvjpegImage& to) {
    if (setjmp(errors_.failed) != 0) return false;
    jpeg_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = to.channel[0] + jpeg_.output_scanline * to.pitch[0];
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    return true;
  }

 private:
  ErrorManager errors_{};
  jpeg_decompress_struct jpeg_{};
};

bool is_current(NvjpegHandle handle) {
  return handle->device == cuda_standin::current_device();
}

struct Coded {
  const unsigned char* data;
  std::size_t length;
  NvjpegImage to;
};

}  // namespace

extern "C" {

NvjpegStatus nvjpegCreateExV2(NvjpegBackend backend, NvjpegAllocator* device,
                              NvjpegAllocator* pinned, unsigned,
                              NvjpegHandle* handle) {
  if (device == nullptr || pinned == nullptr)
    return NvjpegStatus::invalid_parameter;
  if (cuda_standin::begin_unsafe_call("nvjpegCreateExV2"))
    return NvjpegStatus::execution_failed;
  if (backend == NvjpegBackend::engines &&
      !cuda_standin::machine().jpeg_engines)
    return NvjpegStatus::arch_mismatch;
  *handle =
      new NvjpegHandleTag{cuda_standin::current_device(), *device, *pinned};
  return NvjpegStatus::success;
}

NvjpegStatus nvjpegDestroy(NvjpegHandle handle) {
  delete handle;
  return NvjpegStatus::success;
}

NvjpegStatus nvjpegJpegStateCreate(NvjpegHandle handle, NvjpegState* state) {
  *state = new NvjpegStateTag{.handle = handle};
  return NvjpegStatus::success;
}

NvjpegStatus nvjpegJpegStateDestroy(NvjpegState state) {
  const NvjpegAllocator& memory = state->handle->memory;
  if (state->memory != nullptr)
    memory.free(memory.context, state->memory, kMemory, nullptr);
  if (state->pinned != nullptr)
    state->handle->pinned.free(state->handle->pinned.context, state->pinned,
                               kMemory, nullptr);
  delete state;
  return NvjpegStatus::success;
}

NvjpegStatus nvjpegJpegStreamCreate(NvjpegHandle, NvjpegBitstream* bitstream) {
  *bitstream = new NvjpegBitstreamTag;
  return NvjpegStatus::success;
}

NvjpegStatus nvjpegJpegStreamDestroy(NvjpegBitstream bitstream) {
  delete bitstream;
  return NvjpegStatus::success;
}

NvjpegStatus nvjpegJpegStreamParseHeader(NvjpegHandle,
                                         const unsigned char* data,
                                         std::size_t length,
                                         NvjpegBitstream bitstream) {
  Jpeg jpeg;
  if (!jpeg.read_header(data, length)) return NvjpegStatus::bad_jpeg;
  bitstream->supported = jpeg.supported();
  return NvjpegStatus::success;
}

NvjpegStatus nvjpegDecodeBatchedSupported(NvjpegHandle,
                                          NvjpegBitstream bitstream,
                                          int* unsupported) {
  *unsupported = bitstream->supported ? 0 : 1;
  return NvjpegStatus::success;
}

NvjpegStatus nvjpegDecodeBatchedInitialize(NvjpegHandle handle,
                                           NvjpegState state, int images, int,
                                           NvjpegFormat) {
  if (!is_current(handle)) return NvjpegStatus::execution_failed;
  state->images = images;
  return NvjpegStatus::success;
}

NvjpegStatus nvjpegDecodeBatched(NvjpegHandle handle, NvjpegState state,
                                 const unsigned char* const* data,
                                 const std::size_t* lengths,
                                 NvjpegImage* images, cudaStream_t stream) {
  if (cuda_standin::begin_unsafe_call("nvjpegDecodeBatched") ||
      !is_current(handle) || state->images == 0)
    return NvjpegStatus::execution_failed;
  const int count = state->images;
  auto allocated = [&](const NvjpegAllocator& from, void*& memory) {
    return memory != nullptr ||
           from.allocate(from.context, &memory, kMemory, stream) == 0;
  };
  if (!allocated(handle->memory, state->memory) ||
      !allocated(handle->pinned, state->pinned))
    return NvjpegStatus::allocator_failure;
  std::vector<Coded> batch;
  for (int i = 0; i < count; ++i)
    batch.push_back({data[i], lengths[i], images[i]});
  cuda_standin::count_decoded(batch.size());
  const int device = handle->device;
  return cuda_standin::queue(
             stream,
             [batch, device] {
               for (const Coded& coded : batch) {
                 Jpeg jpeg;
                 int owner = -1;
                 if (!jpeg.read_header(coded.data, coded.length) ||
                     cuda_standin::where_is(coded.to.channel[0], 1, &owner) !=
                         Where::device ||
                     owner != device || !jpeg.decode(coded.to))
                   return cudaErrorIllegalAddress;
               }
               return cudaSuccess;
             }) == cudaSuccess
             ? NvjpegStatus::success
             : NvjpegStatus::execution_failed;
}

}  // extern "C"

#define SAME(name) \
  static_assert(   \
      std::is_same_v<decltype(NvjpegApi::name), decltype(&nvjpeg##name)>);
PENSTOCK_NVJPEG_FUNCTIONS(SAME)
#undef SAME
