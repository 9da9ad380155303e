#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "penstock/transforms/batch_operation.h"

namespace penstock {

/// Puts a rectangle of another picture of the batch into each (Yun, Han, Oh and
/// others, "CutMix", 2019), as torchvision's CutMix does.
///
/// The rectangle is drawn for each batch, the same on all ranks: its middle
/// anywhere, its part of the area 1 - lambda, lambda of Beta(alpha, alpha), and
/// what lies outside is cut off. The partners are those of Mixup.
struct CutMix {
  /// Pictures of any type, [channels, height, width] or [height, width,
  /// channels] with 1 or 3 channels, or [height, width].
  std::vector<std::string> outputs;
  double alpha = 1;
  /// As Mixup has them; float32 `cutmix_lambda` is the part of the area that
  /// is a picture's own.
  std::vector<std::string> labels = {};
};

/// `path` is for messages.
std::shared_ptr<const BatchOperation> make_cutmix(
    CutMix cutmix, std::string path = "operations");

/// Left, top, right and bottom of the rectangle of a batch.
std::array<std::int64_t, 4> cutmix_box(const BatchKey& key, double alpha,
                                       std::int64_t height, std::int64_t width);

}  // namespace penstock
