#pragma once

#include <cstdint>
#include <optional>
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

/// What a model of text said of a row.
struct TextOutcome {
  double loss = 0;          ///< per target
  std::int64_t tokens = 0;  ///< that are targets
  std::int64_t sample = -1;
};
/// Of texts: "worst", the rows of the highest loss per token. Null without a
/// row.
Json text_details(std::span<const TextOutcome> rows);

/// What a model said of the place of a row, in degrees.
struct PlaceOutcome {
  double loss = 0, km = 0;  ///< how far off it is
  double latitude = 0, longitude = 0;
  double guessed_latitude = 0, guessed_longitude = 0;
  std::int64_t sample = -1;
};
/// The mean place of the train rows.
struct MeanPlace {
  double latitude = 0, longitude = 0;
};
/// Of places: "baseline", what always guessing the mean place comes to
/// ("val_median_km", "val_mean_km", "place", "of"); "residuals", of the
/// distances in km the mean and a histogram ("unit": "km"); "worst", the rows
/// that are the furthest off. `mean`: nullopt, that of the held-out rows. Null
/// without a row.
Json place_details(std::span<const PlaceOutcome> rows,
                   const std::optional<MeanPlace>& mean);
/// The middle of them, or the mean of the two in the middle; there is one.
double median_of(std::vector<double> values);

inline constexpr std::int64_t kMostClasses = 40;
inline constexpr std::int64_t kMostPoints = 400;
inline constexpr std::size_t kWorstRows = 20;

}  // namespace penstock
