#pragma once

#include <cstddef>

#include "penstock/transforms/image/augment/augment.h"
#include "penstock/transforms/image/image.h"

namespace penstock {

/// What torchvision's RandomErasing does with the tensor of a picture: writes
/// the value of `augment` into the part that `change` names. Random values are
/// standard normal, of `random`.
void erase(const Image& image, const Augment& augment,
           const PixelChange& change, Random random, std::byte* tensor);

}  // namespace penstock
