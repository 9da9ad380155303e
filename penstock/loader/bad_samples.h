#pragma once

#include <cstdint>
#include <optional>

#include "penstock/loader/options.h"
#include "penstock/loader/slot.h"

namespace penstock {

/// Counts the bad samples for which a loader hands out something else, in the
/// order of batches and rows: data with many of them is not trained on. Each
/// rank counts its own, and does not know those of the others: of several, one
/// may meet more than its share of them by chance before it stops. Used by the
/// consumer's thread.
class BadSamples {
 public:
  static constexpr std::int64_t kInARow = 100;
  static constexpr double kShare = 0.001;  ///< of an epoch, at least one

  /// Where one batch is all that is wanted somebody looks at it: it may have
  /// any number.
  BadSamples(const LoaderOptions& options, const Order& order);

  /// How many of a rank's samples of an epoch may be bad. Alone: the share. Of
  /// several: four standard deviations of a Poisson distribution more, and one,
  /// so that a rank stops where all of them together have more than the share,
  /// but for one run in a thousand.
  static std::int64_t most_of(std::int64_t samples, int world);

  /// True once there was one.
  bool any() const { return any_; }
  /// A batch in its turn. Throws Error(transform), code data.too_many_bad.
  void add(const Slot& slot);
  /// Throws that error again once it was thrown.
  void check() const {
    if (refused_) throw Error(*refused_);
  }

 private:
  const std::int64_t most_;  // of this rank, in an epoch
  bool any_ = false;
  std::int64_t epoch_ = -1, in_epoch_ = 0, in_a_row_ = 0;
  std::optional<Error> refused_;
};

}  // namespace penstock
