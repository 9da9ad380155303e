#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "penstock/trainer/batch_rows.h"
#include "penstock/trainer/drawn.h"

namespace penstock {

/// The rows of a batch that count: neither padding nor masked. Layers whose
/// statistics are over all rows of a batch must see no others. Which rows
/// count is known on the host, so the device does not have to be asked.
class CountedRows {
 public:
  CountedRows(const BatchRows& batch, const DrawnFor& rows, at::Device device);

  /// These rows of a tensor of the batch: where all count, or none does, the
  /// tensor itself.
  at::Tensor of(const at::Tensor& rows) const;
  bool none() const { return counted_.empty(); }

 private:
  bool some() const { return !none() && std::ssize(counted_) < rows_; }

  std::int64_t rows_;
  std::vector<std::int64_t> counted_;  // by number, ascending
  at::Tensor index_;  // the same on the device; undefined: the first rows
};

}  // namespace penstock
