#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/trainer/metrics.h"

namespace penstock {

// What a validation saw, beyond its metrics: for the report of a run, by
// numbers of classes and of samples, which the report turns into names. Each
// document is bounded, however many rows and classes there are.

/// What a constant guess is made of: the train rows.
struct ConstantGuess {
  /// Train rows of each class; empty: unknown, the held-out rows decide.
  std::vector<std::int64_t> counts = {};
  double unit = 1;    ///< what 1 is in the target's own unit
  double zero = 0;    ///< what 0 is, in that unit
  bool known = true;  ///< of numbers: 0 is the mean of the train rows
};

/// Of one class a row: "baseline", what always guessing the most frequent class
/// comes to ("val_accuracy", "val_loss", "class", "of"); "confusion", the
/// counts [truth][guess] of the `kMostClasses` classes with the most rows, and
/// of all others together; "by_class", their rows, precision and recall;
/// "worst", the rows of the highest loss. Null without a row.
Json class_details(std::span<const Outcome> rows, std::int64_t classes,
                   const ConstantGuess& constant);

/// Of labels: "by_class" and "worst". Null without a row.
Json label_details(const LabelOutcomes& outcomes);

/// Of numbers, in the target's own unit: "baseline", what always guessing the
/// mean comes to ("val_rmse", "val_mae", "mean", "of"); "residuals", of guess
/// minus truth the mean, a histogram and up to `kMostPoints` pairs (truth,
/// guess); "worst". Null without a row.
Json number_details(std::span<const Outcome> rows,
                    const ConstantGuess& constant);

inline constexpr std::int64_t kMostClasses = 40;
inline constexpr std::int64_t kMostPoints = 400;
inline constexpr std::size_t kWorstRows = 20;

}  // namespace penstock
