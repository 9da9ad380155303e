#pragma once

#include "penstock/base/random.h"
#include "penstock/transforms/image/image.h"

namespace penstock {

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
