#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "penstock/transforms/image/augment/change.h"

namespace penstock::changes {
namespace {

// ImageFilter.SMOOTH of Pillow, in float32: the weights are 1 and 5 through 13,
// and are added row by row, the lowest one first.
template <std::size_t kBytes>
void smooth(const Pixels& from, Pixels& to) {
  constexpr float kSide = 1.0F / 13.0F, kMiddle = 5.0F / 13.0F;
  for (int y = 1; y + 1 < from.height; ++y) {
    const std::uint8_t* rows[3] = {from.row(y + 1), from.row(y),
                                   from.row(y - 1)};
    std::uint8_t* out = to.row(y);
    for (std::size_t x = kBytes; x + kBytes < from.row_bytes(); ++x) {
      float sum = 0.5F;
      for (int r = 0; r < 3; ++r) {
        const std::uint8_t* row = rows[r];
        sum += static_cast<float>(row[x - kBytes]) * kSide +
               static_cast<float>(row[x]) * (r == 1 ? kMiddle : kSide) +
               static_cast<float>(row[x + kBytes]) * kSide;
      }
      out[x] = static_cast<std::uint8_t>(std::clamp(sum, 0.0F, 255.0F));
    }
  }
}

/// The weights of torchvision: those of a Gauss bell, their sum 1.
std::vector<float> bell(int size, double sigma) {
  const double end = (size - 1) * 0.5;
  std::vector<float> weights;
  float sum = 0;
  for (int i = 0; i < size; ++i) {
    const auto x = static_cast<float>((i - end) / sigma);
    weights.push_back(std::exp(-0.5F * x * x));
    sum += weights.back();
  }
  for (float& weight : weights) weight /= sum;
  return weights;
}

/// Beyond its edges a picture is mirrored about its outermost pixels.
int reflected(int at, int size) {
  if (at < 0) at = -at;
  return at < size ? at : 2 * (size - 1) - at;
}

}  // namespace

void sharpen(double factor, Pixels& pixels, Pixels& other) {
  if (pixels.width < 3 || pixels.height < 3) return;
  other = pixels;
  if (pixels.mode == PictureMode::rgb)
    smooth<3>(pixels, other);
  else
    smooth<1>(pixels, other);
  for (int y = 0; y < pixels.height; ++y)
    for (std::size_t x = 0; x < pixels.row_bytes(); ++x)
      pixels.row(y)[x] = blended(other.row(y)[x], pixels.row(y)[x],
                                 static_cast<float>(factor));
}

// The bell of two axes is the product of two, so that it is done along one axis
// after the other.
void blur(const PixelChange& change, Pixels& pixels,
          std::vector<float>& numbers) {
  const int width = static_cast<int>(change.numbers[0]);
  const int height = static_cast<int>(change.numbers[1]);
  const std::vector<float> across = bell(width, change.numbers[2]);
  const std::vector<float> down = bell(height, change.numbers[3]);
  const std::size_t size = bytes_of(pixels.mode), row = pixels.row_bytes();
  numbers.assign(row * static_cast<std::size_t>(pixels.height), 0.0F);
  for (int y = 0; y < pixels.height; ++y) {
    float* to = numbers.data() + row * static_cast<std::size_t>(y);
    for (int k = 0; k < height; ++k) {
      const std::uint8_t* from =
          pixels.row(reflected(y + k - height / 2, pixels.height));
      const float weight = down[static_cast<std::size_t>(k)];
      for (std::size_t x = 0; x < row; ++x)
        to[x] += weight * static_cast<float>(from[x]);
    }
  }
  std::vector<float> line(row);
  for (int y = 0; y < pixels.height; ++y) {
    const float* from = numbers.data() + row * static_cast<std::size_t>(y);
    std::ranges::fill(line, 0.0F);
    for (int k = 0; k < width; ++k) {
      const float weight = across[static_cast<std::size_t>(k)];
      for (int x = 0; x < pixels.width; ++x) {
        const auto at = static_cast<std::size_t>(
            reflected(x + k - width / 2, pixels.width));
        for (std::size_t c = 0; c < size; ++c)
          line[static_cast<std::size_t>(x) * size + c] +=
              weight * from[at * size + c];
      }
    }
    for (std::size_t x = 0; x < row; ++x)
      pixels.row(y)[x] = static_cast<std::uint8_t>(
          std::clamp(std::nearbyint(line[x]), 0.0F, 255.0F));
  }
}

}  // namespace penstock::changes
