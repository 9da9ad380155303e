#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// Of a two-dimensional normal distribution, 90 % lie within so many
/// deviations.
double deviations_within_90();

/// The results of the held-out rows, until they are taken. Keeps two numbers
/// per row, so that the median is exact. Adding never waits for the device.
class Validation {
 public:
  /// Of one batch, each [rows]: the loss, how far off in km, how far off in
  /// deviations that the model itself stated, and the weight: 0 leaves a row
  /// out.
  void add(const at::Tensor& loss, const at::Tensor& km,
           const at::Tensor& deviations, const at::Tensor& weight);

  /// "val_loss", "val_median_km", "val_mean_km", and "val_within_90": the share
  /// of rows that lie within the circle that the model holds to be 90 % sure.
  /// Empty when there was no row. Starts again.
  Json take();

 private:
  std::vector<at::Tensor> seen_;  // [4, rows] each
};

}  // namespace penstock
