#include "penstock/transforms/image/resize_passes.h"

#include <algorithm>

namespace penstock {
namespace resizing {
namespace {

std::uint8_t byte_of(std::int32_t sum, int bits) {
  return static_cast<std::uint8_t>(std::clamp(sum >> bits, 0, 255));
}

template <std::size_t kBytes>
void resize_row(const std::uint8_t* in, int left, const ResizeTaps& taps,
                std::uint8_t* out) {
  for (std::size_t x = 0; x < taps.first.size(); ++x) {
    const std::int32_t* weights = taps.weights_of(x);
    const std::uint8_t* from =
        in + static_cast<std::size_t>(taps.first[x] - left) * kBytes;
    for (std::size_t c = 0; c < kBytes; ++c) {
      std::int32_t sum = half_of(taps.bits);
      for (std::size_t t = 0; t < static_cast<std::size_t>(taps.count[x]); ++t)
        sum += from[t * kBytes + c] * weights[t];
      *out++ = byte_of(sum, taps.bits);
    }
  }
}

void along_rows(const PixelView& in, int left, int first, int end,
                const ResizeTaps& columns, std::vector<std::int32_t>&,
                Pixels& out) {
  for (int y = first; y < end; ++y)
    if (in.mode == PictureMode::rgb)
      resize_row<3>(in.row(y), left, columns, out.row(y - first));
    else
      resize_row<1>(in.row(y), left, columns, out.row(y - first));
}

void along_columns(const PixelView& in, int top, const ResizeTaps& rows,
                   std::vector<std::int32_t>&, Pixels& out) {
  for (int y = 0; y < out.height; ++y) {
    const auto at = static_cast<std::size_t>(y);
    const std::int32_t* weights = rows.weights_of(at);
    for (std::size_t x = 0; x < out.row_bytes(); ++x) {
      std::int32_t sum = half_of(rows.bits);
      for (int t = 0; t < rows.count[at]; ++t)
        sum += in.row(rows.first[at] - top + t)[x] * weights[t];
      out.row(y)[x] = byte_of(sum, rows.bits);
    }
  }
}

constexpr Passes kPlain{.along_rows = along_rows,
                        .along_columns = along_columns};

}  // namespace

const Passes& passes_of(ResizeCode code) {
  const Passes* found = code == ResizeCode::avx512 ? avx512_passes()
                        : code == ResizeCode::avx2 ? avx2_passes()
                                                   : nullptr;
  return found == nullptr ? kPlain : *found;
}

}  // namespace resizing

std::vector<ResizeCode> resize_codes() {
  std::vector<ResizeCode> codes = {ResizeCode::plain};
  if (resizing::avx2_passes() != nullptr) codes.push_back(ResizeCode::avx2);
  if (resizing::avx512_passes() != nullptr) codes.push_back(ResizeCode::avx512);
  return codes;
}

}  // namespace penstock
