#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "penstock/loader/loader.h"
#include "penstock/trainer/metrics.h"

namespace penstock {

/// What a model said of the rows of a batch: [rows] each, of any type. See
/// Outcome.
struct BatchOutcomes {
  at::Tensor loss, truth, guess;
  at::Tensor score = {};   ///< undefined: 0
  at::Tensor before = {};  ///< undefined: 0
  at::Tensor weight;       ///< 0: the row has no truth
  /// The ids of the rows, copied by add(); empty: unknown, -1 each.
  std::span<const SampleId> samples = {};
};

/// What a model said of all rows that it looked at. On the device for some
/// batches, so that none waits for the one before. One thread.
class Outcomes {
 public:
  void add(const BatchOutcomes& batch);
  /// Of all rows that have a truth, in the order of their batches. Begins
  /// again.
  std::vector<Outcome> take();

 private:
  void fetch();

  std::vector<at::Tensor> seen_;        // [rows, 6] each, float32
  std::vector<SampleId> samples_ = {};  // of these rows
  std::vector<Outcome> rows_;           // of the batches before
};

}  // namespace penstock
