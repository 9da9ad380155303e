#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/loader/loader.h"
#include "penstock/session/session.h"
#include "penstock/trainer/outcome_details.h"

namespace penstock {

class RankShare;

/// Of a two-dimensional normal distribution, 90 % lie within so many
/// deviations.
double deviations_within_90();

/// What the model said of the rows of a batch.
struct PlacesOfBatch {
  at::Tensor loss;          ///< [rows], as are those that follow
  at::Tensor km;            ///< how far off
  at::Tensor deviations;    ///< the same, in those that the model itself stated
  at::Tensor weight;        ///< 0 leaves a row out
  at::Tensor truth, guess;  ///< [rows, 2], degrees
  std::span<const SampleId> samples = {};  ///< empty: unknown
};

/// The results of the held-out rows, until they are taken. Keeps eight numbers
/// per row, so that the median is exact. Adding never waits for the device.
class Validation {
 public:
  /// `mean`: the place that is guessed for the baseline; see place_details().
  explicit Validation(std::optional<MeanPlace> mean = {}) : mean_(mean) {}

  void add(const PlacesOfBatch& batch);

  /// "val_loss", "val_median_km", "val_mean_km", and "val_within_90": the share
  /// of rows that lie within the circle that the model holds to be 90 % sure;
  /// and place_details(). Empty when there was no row. Of several ranks (null:
  /// one) over the rows of all. Starts again.
  Validated take(RankShare* ranks = nullptr);

 private:
  struct Place;
  std::vector<Place> places();

  std::optional<MeanPlace> mean_;
  std::vector<at::Tensor> seen_;  // [8, rows] each
  std::vector<SampleId> samples_;
};

}  // namespace penstock
