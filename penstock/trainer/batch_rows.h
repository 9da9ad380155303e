#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/loader/loader.h"

namespace penstock {

/// Rows of a batch, where they lie: all of it, or some that follow one another.
/// A view: what it is made of outlives it.
class BatchRows {
 public:
  /// All rows of a batch.
  BatchRows(const Batch& batch);
  /// Rows that no loader made. `ids` has one for each.
  BatchRows(std::int64_t rows, std::vector<NamedTensor> tensors,
            std::span<const SampleId> ids)
      : rows_(rows), tensors_(std::move(tensors)), ids_(ids) {}

  /// Rows [begin, end). Tensors that have no part for each row stay whole.
  BatchRows slice(std::int64_t begin, std::int64_t end) const;

  /// The same rows in other memory; of which samples they are is not known.
  BatchRows copied_to(std::vector<NamedTensor> tensors) const;

  std::int64_t rows() const { return rows_; }
  /// Whether some rows of the batch are left out.
  bool is_slice() const { return is_slice_; }
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  /// As Batch::ids() and Batch::rejected() have them.
  std::span<const SampleId> ids() const { return ids_; }
  const std::vector<RejectedSample>& rejected() const { return rejected_; }

 private:
  std::int64_t rows_ = 0;
  bool is_slice_ = false;
  std::vector<NamedTensor> tensors_;
  std::span<const SampleId> ids_;
  std::vector<RejectedSample> rejected_;
};

bool has_tensor(const BatchRows& batch, const std::string& name);
/// A tensor of a batch, which must have it, where it lies.
at::Tensor tensor_of(const BatchRows& batch, const std::string& name);
/// What each row counts, [rows], float32: 0 for padding, else 1.
at::Tensor weights_of(const BatchRows& batch);

}  // namespace penstock
