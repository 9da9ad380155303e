#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/loader/slot.h"

namespace penstock {

/// Copies a loader's batches to its device, by one stream. Thread-safe.
///
/// A copy that has begun is not interrupted, and a later batch's would hold up
/// that of an earlier one. So they are queued in the order of the batches; a
/// later one goes first only where nothing else is being copied.
class CopyLine {
 public:
  explicit CopyLine(Device& device) : stream_(device.make_stream()) {}
  ~CopyLine() { settle(); }
  CopyLine(const CopyLine&) = delete;
  CopyLine& operator=(const CopyLine&) = delete;

  /// A batch is filled. Each number comes once, from 0 on.
  void add(std::shared_ptr<Slot> slot);
  /// Queues the copy of a batch whose turn it is. False when it is no batch's
  /// turn. `slot` is set before anything is thrown.
  bool next(std::shared_ptr<Slot>& slot);
  /// Queues the copy of a batch now. Sets `slot.copied`.
  void copy(Slot& slot);
  /// Waits for all that is queued. Never throws.
  void settle() noexcept;

 private:
  void queue(Slot& slot) PENSTOCK_REQUIRES(mutex_);
  void count(std::int64_t number) PENSTOCK_REQUIRES(mutex_);

  Mutex mutex_;
  const std::unique_ptr<Stream> stream_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Slot>> waiting_ PENSTOCK_GUARDED_BY(mutex_);
  std::int64_t next_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  // Those that went before their turn.
  std::vector<std::int64_t> ahead_ PENSTOCK_GUARDED_BY(mutex_);
  Event last_ PENSTOCK_GUARDED_BY(mutex_);
};

}  // namespace penstock
