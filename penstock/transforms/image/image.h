#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/settings.h"
#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/image/augment/augment.h"
#include "penstock/transforms/image/picture.h"
#include "penstock/transforms/image/picture_header.h"
#include "penstock/transforms/image/resize_taps.h"

namespace penstock {

/// How a picture becomes one of the size that is wanted, as torchvision names
/// it.
enum class Framing : std::uint8_t {
  random_resized_crop,  ///< RandomResizedCrop
  resize_center,        ///< Resize of the short side, then CenterCrop
  resize,               ///< Resize, whatever its proportions
  none,                 ///< it must have that size
};

/// A column of encoded pictures: bytes of JPEG, PNG, WebP or GIF files, or
/// their paths.
struct Image {
  std::string column = "image";
  std::string folder;  ///< where paths begin; empty: the column holds bytes
  int height = 224, width = 224;
  PictureMode mode = PictureMode::rgb;
  Framing train = Framing::resize_center;
  Framing val = Framing::resize_center;
  std::array<double, 2> scale = {0.08, 1.0};
  std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0};
  int resize = 256;  ///< the short side, before the centre is cropped
  Interpolation interpolation = Interpolation::bilinear;
  bool fast = false;  ///< JPEG is decoded and resized with fewer bits
  /// A picture with more is bad, before it is decoded.
  std::int64_t max_pixels = kMostPixels;
  double flip = 0;  ///< how often a picture of the train side is mirrored
  /// What else is done to pictures of the train side once they have their size.
  std::vector<Augment> augments = {};
  Dtype dtype = Dtype::uint8;
  bool channels_last = false;
  /// By channel; both empty: floats are between 0 and 1.
  std::vector<double> mean, std;
  bool record_draws = false;
  bool store_decoded = false;  ///< what is kept: pixels, or the bytes
  int max_side = 0;            ///< of what is kept; 0: unchanged
  /// Whether a device with memory of its own makes the pixels of a batch of
  /// those that are kept, or of files that it decodes.
  bool finish_on_device = false, decode_on_device = false;

  bool on_device() const { return finish_on_device || decode_on_device; }
  /// The changes of a picture's pixels at most.
  int most_changes() const;
};

const SettingsTable<Image>& image_settings();

/// The kind `image`: the tensor NAME, [channels, height, width] or [height,
/// width, channels]; and with `record_draws` NAME_draw, int32 [5]: top, left,
/// height, width and whether it is mirrored, in pixels of the picture that is
/// turned as EXIF says; and where pictures are augmented NAME_augment, float64
/// [changes at most, 8]: each a Change and its numbers, in their order.
///
/// Decodes, resizes and normalises as torchvision does with PIL pictures, byte
/// by byte for the same draws. Pictures are turned as Pillow's
/// ImageOps.exif_transpose() does.
std::shared_ptr<const FieldKind> make_image(std::string name, Image image);

/// The finisher of such a field.
std::unique_ptr<FieldFinisher> make_image_finisher(const Image& image,
                                                   bool train);

}  // namespace penstock
