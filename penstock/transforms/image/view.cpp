#include "penstock/transforms/image/view.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

/// As Python rounds: to the even one of two that are equally near.
int rounded(double value) { return static_cast<int>(std::nearbyint(value)); }

// RandomResizedCrop of torchvision, the crop of Szegedy et al. (2015): the
// share of the area is uniform, the ratio of the sides is uniform in its
// logarithm. All ten attempts draw from one counter, so the crop is a function
// of the key, the row and the size of the picture.
PictureBox random_crop(const Image& image, int width, int height,
                       Random random) {
  constexpr int kAttempts = 10;
  const double area = static_cast<double>(width) * height;
  const double least = std::log(image.ratio[0]),
               most = std::log(image.ratio[1]);
  auto between = [&](double from, double to) {
    return from + (to - from) * random.uniform();
  };
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double target = area * between(image.scale[0], image.scale[1]);
    const double aspect = std::exp(between(least, most));
    const int w = rounded(std::sqrt(target * aspect));
    const int h = rounded(std::sqrt(target / aspect));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const auto top = random.below(static_cast<std::uint64_t>(height - h) + 1);
    const auto left = random.below(static_cast<std::uint64_t>(width - w) + 1);
    return {static_cast<int>(left), static_cast<int>(top), w, h};
  }
  // The largest one in the middle that has a ratio that is allowed.
  const double ratio = static_cast<double>(width) / height;
  int w = width, h = height;
  if (ratio < image.ratio[0])
    h = rounded(w / image.ratio[0]);
  else if (ratio > image.ratio[1])
    w = rounded(h * image.ratio[1]);
  w = std::clamp(w, 1, width);
  h = std::clamp(h, 1, height);
  return {(width - w) / 2, (height - h) / 2, w, h};
}

/// The middle `count` of the `out` pixels that an axis becomes.
ResizeAxis centre(int size, int out, int count) {
  ResizeAxis axis = ResizeAxis::whole(size, out);
  axis.first = rounded((out - count) / 2.0);
  axis.count = count;
  return axis;
}

View centred(const Image& image, int width, int height) {
  const int shorter = std::min(width, height), longer = std::max(width, height);
  const int other = static_cast<int>(
      static_cast<double>(std::int64_t{image.resize} * longer) / shorter);
  const int w = width <= height ? image.resize : other;
  const int h = width <= height ? other : image.resize;
  return {.crop = {0, 0, width, height},
          .columns = centre(width, w, image.width),
          .rows = centre(height, h, image.height)};
}

}  // namespace

View view_of(const Image& image, Framing framing, int width, int height,
             Random crop, Random flip, bool train) {
  View view;
  if (framing == Framing::resize_center) {
    view = centred(image, width, height);
  } else {
    view.crop = framing == Framing::random_resized_crop
                    ? random_crop(image, width, height, crop)
                    : PictureBox{0, 0, width, height};
    view.columns = ResizeAxis::whole(view.crop.width, image.width);
    view.rows = ResizeAxis::whole(view.crop.height, image.height);
  }
  view.flipped = train && flip.uniform() < image.flip;
  return view;
}

std::array<std::int32_t, 5> draws_of(const View& view) {
  auto part = [](const ResizeAxis& axis, int pixel) {
    return rounded(static_cast<double>(pixel) * axis.size / axis.out);
  };
  const int top = part(view.rows, view.rows.first);
  const int left = part(view.columns, view.columns.first);
  return {view.crop.top + top, view.crop.left + left,
          part(view.rows, view.rows.first + view.rows.count) - top,
          part(view.columns, view.columns.first + view.columns.count) - left,
          view.flipped ? 1 : 0};
}

}  // namespace penstock
