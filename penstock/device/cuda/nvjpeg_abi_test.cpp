#include <gtest/gtest.h>
#include <nvjpeg.h>

#include <cstddef>
#include <type_traits>

#include "penstock/device/cuda/nvjpeg.h"

// Built where the toolkit has nvjpeg.h: our declarations are those of it, but
// for the names.

namespace penstock::cuda {
namespace {

/// Passed alike: both pointers, or numbers of one size.
template <class Ours, class Theirs>
constexpr bool alike = std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
                       sizeof(Ours) == sizeof(Theirs);

template <class Ours, class Theirs>
struct Same : std::false_type {};
template <class R1, class... A1, class R2, class... A2>
requires(sizeof...(A1) ==
         sizeof...(A2)) struct Same<R1 (*)(A1...), R2 (*)(A2...)>
    : std::bool_constant<alike<R1, R2> && (alike<A1, A2> && ...)> {
};

#define SAME(name) \
  static_assert(   \
      Same<decltype(NvjpegApi::name), decltype(&nvjpeg##name)>::value);
PENSTOCK_NVJPEG_FUNCTIONS(SAME)
#undef SAME

static_assert(sizeof(NvjpegImage) == sizeof(nvjpegImage_t) &&
              offsetof(NvjpegImage, pitch) == offsetof(nvjpegImage_t, pitch));
static_assert(alike<decltype(NvjpegAllocator::context), void*> &&
              sizeof(NvjpegAllocator) == sizeof(nvjpegDevAllocatorV2_t) &&
              sizeof(NvjpegAllocator) == sizeof(nvjpegPinnedAllocatorV2_t));
static_assert(
    std::is_same_v<decltype(NvjpegAllocator::allocate), tDevMallocV2> &&
    std::is_same_v<decltype(NvjpegAllocator::free), tDevFreeV2>);

TEST(NvjpegDeclarations, HaveTheValuesOfTheHeader) {
  auto same = [](auto ours, auto theirs) {
    EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
  };
  same(NvjpegStatus::success, NVJPEG_STATUS_SUCCESS);
  same(NvjpegStatus::invalid_parameter, NVJPEG_STATUS_INVALID_PARAMETER);
  same(NvjpegStatus::bad_jpeg, NVJPEG_STATUS_BAD_JPEG);
  same(NvjpegStatus::jpeg_not_supported, NVJPEG_STATUS_JPEG_NOT_SUPPORTED);
  same(NvjpegStatus::allocator_failure, NVJPEG_STATUS_ALLOCATOR_FAILURE);
  same(NvjpegStatus::execution_failed, NVJPEG_STATUS_EXECUTION_FAILED);
  same(NvjpegStatus::arch_mismatch, NVJPEG_STATUS_ARCH_MISMATCH);
  same(NvjpegStatus::incomplete_bitstream, NVJPEG_STATUS_INCOMPLETE_BITSTREAM);
  same(NvjpegBackend::processors, NVJPEG_BACKEND_GPU_HYBRID);
  same(NvjpegBackend::engines, NVJPEG_BACKEND_HARDWARE);
  same(NvjpegFormat::rgb_interleaved, NVJPEG_OUTPUT_RGBI);
  same(kNvjpegSmoothColours, NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION);
}

}  // namespace
}  // namespace penstock::cuda
