#pragma once

#include <atomic>
#include <memory>

#include "penstock/base/sync.h"
#include "penstock/sources/sources.h"

namespace penstock {

class Dataset;

/// Rows that are prepared beside the batches, as soon as all of them are there.
/// Thread-safe.
class LaterRows {
 public:
  /// Null: they are not all there, or will not be.
  std::shared_ptr<const Dataset> rows() const;
  /// Until all rows are there, or will not be, or `stop` is set.
  void wait(StopFlag stop) const;

  /// Called by who prepares them: once, where all are there; and in any case
  /// at the end.
  void set(std::shared_ptr<const Dataset> rows);
  void end();

 private:
  mutable Mutex mutex_;
  mutable Condition changed_;
  bool ended_ PENSTOCK_GUARDED_BY(mutex_) = false;
  // Released when `rows_` is written, which nobody writes later.
  std::atomic<bool> there_{false};
  std::shared_ptr<const Dataset> rows_;
};

}  // namespace penstock
