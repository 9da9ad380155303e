#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "penstock/session/session.h"
#include "penstock/trainer/batch_rows.h"

namespace penstock {

/// Rows that take the memory of real ones: zeros, as long as the longest row of
/// the data.
class MadeUpRows {
 public:
  MadeUpRows(const FittedFields& data, at::Device device);

  /// So many; valid until the next call.
  BatchRows rows(std::int64_t rows);
  /// Frees their memory.
  void clear() { memory_.clear(); }
  std::int64_t bytes() const;

 private:
  const at::Device device_;
  const std::vector<MadeUpTensor> tensors_;
  std::vector<at::Tensor> memory_;
  std::vector<SampleId> ids_;
};

}  // namespace penstock
