#include "penstock/transforms/image/kept_picture.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "penstock/base/error.h"

namespace penstock {
namespace {

constexpr std::size_t kSizes = KeptPicture::kHead;

/// The size of a picture whose longer side becomes `most` pixels.
int shrunk_side(int side, int longer, int most) {
  const double exact = static_cast<double>(side) * most / longer;
  return std::max(1, static_cast<int>(std::nearbyint(exact)));
}

}  // namespace

std::pair<int, int> kept_size(int width, int height, int max_side) {
  const int longer = std::max(width, height);
  if (max_side <= 0 || longer <= max_side) return {width, height};
  return {shrunk_side(width, longer, max_side),
          shrunk_side(height, longer, max_side)};
}

std::size_t kept_bytes(std::span<const std::byte> encoded, PictureMode mode,
                       int max_side) {
  PictureHeader header;
  if (const std::string why = read_header(encoded, header); !why.empty())
    return kSizes + why.size();
  const auto [width, height] =
      kept_size(header.shown_width(), header.shown_height(), max_side);
  return kSizes + static_cast<std::size_t>(width) *
                      static_cast<std::size_t>(height) * bytes_of(mode);
}

KeptPicture::KeptPicture(std::span<const std::byte> run) {
  std::int32_t sizes[2];
  PENSTOCK_ASSERT(run.size() >= kSizes, "a kept picture has a size");
  std::memcpy(sizes, run.data(), kSizes);
  width = sizes[0];
  height = sizes[1];
  pixels = reinterpret_cast<const std::uint8_t*>(run.data() + kSizes);
  if (width == 0)
    why.assign(reinterpret_cast<const char*>(pixels), run.size() - kSizes);
}

PixelView KeptPicture::part(const PictureBox& box, PictureMode mode) const {
  const std::size_t pixel = bytes_of(mode);
  const std::size_t stride = static_cast<std::size_t>(width) * pixel;
  return {.first = pixels + static_cast<std::size_t>(box.top) * stride +
                   static_cast<std::size_t>(box.left) * pixel,
          .stride = stride,
          .width = box.width,
          .height = box.height,
          .mode = mode};
}

void PictureKeeper::append(std::span<const std::byte> encoded, Bytes& out) {
  Pixels* shown = nullptr;
  const std::string why = decode(encoded, shown);
  out.append_value(static_cast<std::int32_t>(why.empty() ? shown->width : 0));
  out.append_value(static_cast<std::int32_t>(why.empty() ? shown->height : 0));
  if (why.empty())
    out.append(shown->row(0),
               shown->row_bytes() * static_cast<std::size_t>(shown->height));
  else
    out.append(why.data(),
               std::min(why.size(), KeptPicture::kMostBad - kSizes));
}

/// `shown` is what is kept. What is wrong; empty: nothing.
std::string PictureKeeper::decode(std::span<const std::byte> encoded,
                                  Pixels*& shown) {
  PictureHeader header;
  std::string why = read_header(encoded, header);
  if (!why.empty()) return why;
  const PictureBox whole{0, 0, header.width, header.height};
  why = decoder_->decode(encoded, header, whole, mode_, stored_);
  if (!why.empty()) return why;
  if (header.orientation != 1) turn(stored_, header.orientation, turned_);
  shown = header.orientation == 1 ? &stored_ : &turned_;
  const auto [width, height] =
      kept_size(shown->width, shown->height, max_side_);
  if (width != shown->width || height != shown->height) {
    const Interpolation by = mode_ == PictureMode::index
                                 ? Interpolation::nearest
                                 : Interpolation::bilinear;
    make_taps(by, ResizeAxis::whole(shown->width, width), columns_);
    make_taps(by, ResizeAxis::whole(shown->height, height), rows_);
    resizer_.resize(shown->view(), 0, 0, columns_, rows_, shrunk_);
    shown = &shrunk_;
  }
  return {};
}

}  // namespace penstock
