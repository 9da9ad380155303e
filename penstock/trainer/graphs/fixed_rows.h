#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "penstock/trainer/batch_rows.h"

namespace penstock {

/// What decides which kernels a pass over a batch's tensors queues.
struct RowsShape {
  struct Of {
    std::string name;
    Dtype dtype = Dtype::float32;
    Shape shape;
    /// The address modulo the largest alignment that matters. Libraries choose
    /// kernels by how a matrix is aligned, and others give other last bits.
    std::size_t place = 0;
    bool operator==(const Of&) const = default;
  };
  std::int64_t rows = 0;
  bool is_slice = false;
  std::vector<Of> tensors;
  bool operator==(const RowsShape&) const = default;
};
RowsShape shape_of(const BatchRows& batch);

/// Copies of a batch's tensors that keep their places, aligned as the originals
/// are. They have no ids: nothing that a graph replays may depend on these.
class FixedRows {
 public:
  /// For batches of the shape of this one, which is copied.
  explicit FixedRows(const BatchRows& first);

  const BatchRows& rows() const { return rows_; }
  /// Queues the copies on libtorch's current stream.
  void copy(const BatchRows& batch) const;

 private:
  std::vector<at::Tensor> memory_;
  BatchRows rows_;
};

}  // namespace penstock
