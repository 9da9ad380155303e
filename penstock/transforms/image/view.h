#pragma once

#include "penstock/base/random.h"
#include "penstock/transforms/image/image.h"

namespace penstock {

// The operations of DrawKey::random(). What belongs to one picture, its mask
// and its boxes, draws the same numbers.
inline constexpr std::uint64_t kCropDraws = 0x63726f70;           // "crop"
inline constexpr std::uint64_t kFlipDraws = 0x666c6970;           // "flip"
inline constexpr std::uint64_t kAugmentDraws = 0x6175676d656e74;  // "augment"
inline constexpr std::uint64_t kEraseDraws = 0x6572617365;        // "erase"

/// Which part of a picture comes into a batch, and how.
struct View {
  PictureBox crop;           ///< that is resized
  ResizeAxis columns, rows;  ///< of the crop
  bool flipped = false;
};

/// The part of a picture of this size. `crop` and `flip` give the random
/// numbers, of which only the train side uses any. The draws are those of
/// torchvision's RandomResizedCrop.get_params() in distribution.
View view_of(const Image& image, Framing framing, int width, int height,
             Random crop, Random flip, bool train);

/// Top, left, height and width in the whole picture of what a view shows,
/// rounded where it is no whole number, and whether it is mirrored.
std::array<std::int32_t, 5> draws_of(const View& view);

}  // namespace penstock
