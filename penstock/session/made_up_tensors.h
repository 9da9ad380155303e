#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/tensor.h"
#include "penstock/dataset/dataset.h"

namespace penstock {

/// A tensor of rows that are made up: as many elements a row as the longest row
/// of the data has.
struct MadeUpTensor {
  std::string name;
  Dtype dtype = Dtype::float32;
  Shape row_shape;
  /// Where each row begins in another tensor, and the end of the last: so many
  /// elements each; 0: it is no such tensor.
  std::int64_t offsets = 0;
  /// How long each row is in another tensor; 0: it is no such tensor.
  std::int64_t lengths = 0;
};
/// Those of a batch of these fields.
std::vector<MadeUpTensor> made_up_tensors(const FittedFields& data);

}  // namespace penstock
