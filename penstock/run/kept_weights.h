#pragma once

#include <optional>
#include <string>

#include "penstock/session/session.h"

namespace penstock {

/// What a run leaves of its model when its steps are over. What it refers to
/// outlives it; nothing writes checkpoints any more.
struct KeptWeights {
  const Job& job;
  const TrainOptions& options;
  RunFolder& folder;
  const Checkpoints& checkpoints;
  Session& session;
  Stepper& stepper;

  /// Writes `weights/last.safetensors`, where the job keeps the last weights or
  /// there are no best ones.
  void write_last() const;
  /// The model has its best weights from here on, where the job keeps them;
  /// says which weights these are.
  void put_back_best() const;
  /// Evaluates the model on the side test and tells the listener. What it
  /// measures, by name without "val_"; null where that side has no rows.
  /// Missing: the run was stopped meanwhile. Of several ranks all call it, each
  /// evaluates its share, with the weights that rank 0 has.
  std::optional<Json> evaluate_test() const;
  /// An adapter is small: every run leaves it in its own folder, as far as it
  /// came.
  void write_adapter() const;
  /// Writes the model's weights for other programs, and the statistics of its
  /// rows, where the run took all its steps (`all`).
  void write_output(OutputFolder& output, bool all) const;

 private:
  const Best* best() const;  ///< whose weights are kept; null: none
  bool stopped() const;      ///< of several ranks: any of them
};

/// The folder of `--output`, made before the first step. Throws Error(request)
/// for a job without a model.
std::optional<OutputFolder> output_of(const Job& job,
                                      const TrainOptions& options);

}  // namespace penstock
