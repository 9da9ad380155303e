#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/transforms/image/picture.h"
#include "penstock/transforms/image/resize_taps.h"

namespace penstock {

/// What is done to the pixels of a picture that has its size, as a function of
/// torchvision.transforms.v2.functional does it, and the numbers that were
/// drawn for it. The values are what NAME_augment shows.
enum class Change : std::uint8_t {
  none = 0,
  rotate = 1,      ///< degrees, counter-clockwise
  affine = 2,      ///< degrees, right, down, scale, shear x, shear y; 1: about
                   ///< the upper left corner instead of the middle
  brightness = 3,  ///< factor
  contrast = 4,    ///< factor
  saturation = 5,  ///< factor
  hue = 6,         ///< -0.5 to 0.5
  sharpness = 7,   ///< factor
  posterize = 8,   ///< bits
  solarize = 9,    ///< from which byte on
  auto_contrast = 10,
  equalize = 11,
  invert = 12,
  blur = 13,   ///< width and height of the kernel, sigma x, sigma y
  erase = 14,  ///< top, left, height, width: of the tensor, not of pixels
  flip_vertically = 15,
  grey = 16,
};

struct PixelChange {
  Change change = Change::none;
  std::array<double, 7> numbers{};
  Interpolation interpolation = Interpolation::nearest;  ///< of those that move
  std::array<std::uint8_t, 3> fill{};                    ///< where nothing is
  std::size_t entry = 0;  ///< of `augment`, that it was drawn for
};

/// Of a row of NAME_augment.
inline constexpr std::int64_t kNumbersOfChange = 8;

/// Changes pictures, byte by byte as torchvision 0.26 does with those of Pillow
/// 13; a blur may differ by 1, since there it is a convolution of torch, whose
/// order of adding depends on the processor. Belongs to one thread at a time.
class PixelChanger {
 public:
  /// `erase` is handled in erase.h.
  void apply(const PixelChange& change, Pixels& pixels);

 private:
  Pixels other_;
  std::vector<float> numbers_;
};

/// True for what moves pixels, and so masks, too.
inline bool moves(Change change) {
  return change == Change::rotate || change == Change::affine ||
         change == Change::flip_vertically;
}

/// Left becomes right.
void mirror(Pixels& pixels);

/// The parts of a PixelChanger; `other` and `numbers` are scratch.
namespace changes {
/// Those that look at one pixel, and at the picture's brightness.
void colour(const PixelChange& change, Pixels& pixels);
/// Those that move pixels.
void warp(const PixelChange& change, Pixels& pixels, Pixels& other);
void sharpen(double factor, Pixels& pixels, Pixels& other);
void blur(const PixelChange& change, Pixels& pixels,
          std::vector<float>& numbers);
/// Image.blend() of Pillow, of one byte: from `a` at factor 0 to `b` at 1, and
/// beyond.
std::uint8_t blended(int a, int b, float factor);
/// Which point of a picture is shown at (x, y): a x + b y + c, d x + e y + f.
std::array<double, 6> matrix_of(const PixelChange& change, int width,
                                int height);
}  // namespace changes

}  // namespace penstock
