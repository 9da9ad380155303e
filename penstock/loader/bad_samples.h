#pragma once

#include <cstdint>

#include "penstock/loader/options.h"
#include "penstock/loader/slot.h"

namespace penstock {

/// Counts the bad samples for which a loader hands out something else, in the
/// order of batches and rows: data with many of them is not trained on. Used by
/// the consumer's thread.
class BadSamples {
 public:
  static constexpr std::int64_t kInARow = 100;
  static constexpr double kShare = 0.001;  ///< of an epoch, at least one

  BadSamples(const LoaderOptions& options, const Order& order);

  /// True once there was one.
  bool any() const { return any_; }
  /// A batch in its turn. Throws Error(transform), code data.too_many_bad.
  void add(const Slot& slot);

 private:
  const std::int64_t most_;  // of this rank, in an epoch
  bool any_ = false;
  std::int64_t epoch_ = -1, in_epoch_ = 0, in_a_row_ = 0;
};

}  // namespace penstock
