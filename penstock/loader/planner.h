#pragma once

#include "penstock/dataset/dataset.h"
#include "penstock/loader/options.h"
#include "penstock/loader/slot.h"

namespace penstock {

/// Turns a position into a planned slot: which samples, how large, and how the
/// work is shared. Immutable, so thread-safe; a slot belongs to one thread.
class BatchPlanner {
 public:
  BatchPlanner(const Dataset& dataset, const LoaderOptions& options,
               const Order& order, const std::vector<BatchTensor>& tensors);

  /// Sets plan, ids, layout and item_ends: `parts` items, or fewer. Throws
  /// Error(request), code loader.batch_bytes, for a batch that is larger than
  /// allowed.
  void plan(Position at, int parts, Slot& slot) const;

 private:
  void share_out(int parts, Slot& slot) const;
  [[noreturn]] void refuse_size(const Slot& slot) const;

  const Dataset& dataset_;
  const LoaderOptions& options_;
  const Order& order_;
  const std::vector<BatchTensor>& tensors_;
};

}  // namespace penstock
