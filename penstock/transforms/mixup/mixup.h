#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/transforms/batch_operation.h"

namespace penstock {

/// Mixes the samples of a batch (Zhang, Cisse, Dauphin and Lopez-Paz, "mixup:
/// Beyond Empirical Risk Minimization", 2018): each becomes
/// lambda * itself + (1 - lambda) * its partner.
///
/// lambda is drawn for each batch, of Beta(alpha, alpha), the same on all
/// ranks. The rows are put into a drawn order; the partner is the next one, of
/// the last the first. So no row is its own partner, unless it is alone: then
/// it stays unchanged.
struct Mixup {
  std::vector<std::string> outputs;  ///< of floating types
  double alpha = 1;
  /// Tensors of any type that stay unchanged: the partner's are added as
  /// NAME_mixed, and lambda as float32 `mixup_lambda`, for losses that mix.
  std::vector<std::string> labels = {};
};

/// `path` is for messages.
std::shared_ptr<const BatchOperation> make_mixup(
    Mixup mixup, std::string path = "operations");

}  // namespace penstock
