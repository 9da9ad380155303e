#pragma once

#include <ATen/core/Tensor.h>

namespace penstock {

/// The loss of a batch, to be learned from: scalars, float32.
struct MeanLoss {
  at::Tensor mean;  ///< over the rows that count
  /// What they count together, of a model that counts: steps that move the
  /// weights together then have the loss of all that they count.
  at::Tensor counted = {};
};

}  // namespace penstock
