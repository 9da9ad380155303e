#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/random.h"
#include "penstock/base/settings.h"
#include "penstock/transforms/image/augment/change.h"

namespace penstock {

/// A transform of torchvision that draws what it does with each picture of the
/// train side: an entry of `augment`.
enum class AugmentKind : std::uint8_t {
  rotation,
  affine,
  color_jitter,
  rand_augment,
  trivial_augment_wide,
  gaussian_blur,
  random_erasing,
  adjust_sharpness,
  auto_contrast,
  equalize,
  grayscale,
  invert,
  posterize,
  solarize,
  vertical_flip,
};

/// Numbers of a setting that may also be given as one: [low, high], of each
/// axis, of each channel.
using NumberList = std::vector<double>;

/// An entry, checked. Each kind uses what its table lists.
struct Augment {
  AugmentKind kind = AugmentKind::rotation;
  double p = 1;  ///< how often it is done
  NumberList degrees, translate, scale, shear;
  NumberList brightness, contrast, saturation, hue;
  int num_ops = 2, magnitude = 9, num_magnitude_bins = 31;
  NumberList kernel_size, sigma = {0.1, 2};
  NumberList ratio = {0.3, 3.3};
  NumberList value = {0};     ///< of random_erasing, as the tensor has it
  bool random_value = false;  ///< normal numbers instead
  double factor = 2;          ///< of adjust_sharpness
  int bits = 4;
  double threshold = 128;
  Interpolation interpolation = Interpolation::nearest;
  NumberList fill = {0};

  /// The changes that it makes at most.
  int most_changes() const;
};

/// A value of `augment`: names, or objects with one key, which names the kind,
/// and its settings. Throws Error(request) with the JSON path.
std::vector<Augment> parse_augments(const Json& list, const std::string& path);
Json augments_schema();
/// With all defaults.
Json augments_json(const std::vector<Augment>& augments);

/// What is done to a picture of this size, in order: the distributions are
/// those of torchvision 0.26.
void draw_changes(const std::vector<Augment>& augments, int width, int height,
                  Random random, std::vector<PixelChange>& changes);

/// The numbers that RandAugment and TrivialAugmentWide choose from, by the
/// change and its place among `bins`; of changes without a number 0.
double augment_magnitude(AugmentKind kind, std::size_t change, int bins,
                         int place, int width, int height);

}  // namespace penstock
