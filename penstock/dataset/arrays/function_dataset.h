#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/once.h"
#include "penstock/dataset/dataset_base.h"
#include "penstock/monitor/monitor.h"

namespace penstock {

/// The arguments of a function that makes rows: some rows of a batch, at least
/// one, in host memory.
struct RowCall {
  std::span<const SampleId> ids;  ///< none is -1
  /// The same rows of the data set that it maps, a view [rows, ...] of each
  /// tensor; empty where it maps none. Keep `in_memory` to go on reading them.
  std::span<const TensorView> in;
  std::shared_ptr<const void> in_memory;
  std::span<const TensorView> out;  ///< [rows, ...], to be written as a whole
  Position at;                      ///< of the batch
};

/// A function that makes rows, with what must be known of it beforehand.
struct RowFunction {
  RowLayout layout;         ///< of the rows that it makes
  std::string fingerprint;  ///< differs when what it does does
  /// Called with whole batches, because a row depends on the others in its
  /// batch. (In the last batch of a padded epoch: without the padding.)
  bool whole_batches = false;
  /// Called by all threads of a loader, at the same time. What it throws is
  /// delivered in the batch's turn.
  std::function<void(const RowCall&)> call;
};

/// The layout of tensors, one after the other; `bytes` and `offset` are set.
RowLayout layout_of_tensors(std::vector<TensorSpec> tensors);

/// The rows of each side, by number. Not given: all are in train, none in val
/// and test.
struct RowSides {
  std::optional<std::vector<SampleId>> train, val, test;
};

/// Rows that a function makes each time they are requested: of their numbers
/// alone, or of the rows of another data set, which it maps. The function never
/// sees padding, which is zeros, nor rows that were rejected.
class FunctionDataset final : public Dataset {
 public:
  /// Rows 0 .. count - 1.
  FunctionDataset(std::int64_t count, RowFunction function,
                  RowSides sides = {});
  /// Maps the rows of `source`, with their numbers and sides. Those that live
  /// in the memory of a device are copied to the host for it, batch by batch.
  /// The plan is that of `source`, with nothing kept of what it makes.
  FunctionDataset(std::shared_ptr<const Dataset> source, RowFunction function,
                  Device& device);

  void select(Side side, std::span<SampleId> ranks) const override;
  /// Of the function, and of the rows that it maps.
  const std::string& fingerprint() const override;
  std::unique_ptr<SlotFiller> open_filler(
      FillMeters& meters, const FillerOptions& options) const override;
  /// Those of the rows that it maps.
  std::unique_ptr<ReadAhead> open_read_ahead(
      ReadAhead::Options options) const override;

 private:
  const std::shared_ptr<const Dataset> source_;  // null: of their numbers
  const RowFunction function_;
  const RowSides sides_;
  Device* const device_ = nullptr;  // where it is not the host
  mutable Once hashed_;
  mutable std::string fingerprint_;
  mutable Once looks_;
  mutable std::unique_ptr<ThreadSampler>
      sampler_;  // at threads in the function
};

}  // namespace penstock
