#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/session/session.h"
#include "penstock/trainer/parameter.h"

namespace penstock {

/// What is known of a model once it is made.
struct ModelFacts {
  /// What is learned, in a fixed order. It shares memory with the model; each
  /// takes part in the loss.
  std::vector<Parameter> parameters;
  /// Of the model's state, but not learned. They share memory with it.
  std::vector<Parameter> buffers = {};
  /// Of all weights, learned or not; 0: those that are learned are all.
  std::int64_t numbers = 0, bytes = 0;
  /// Whether batches count for more or less than others: by their tokens, say.
  bool counts = false;
  /// The share of a true class that is given to all; missing for a model that
  /// has no such setting.
  std::optional<double> smoothing = {};
  /// Why forward and backward cannot be recorded as a CUDA graph; empty: they
  /// queue the same kernels for all batches of one shape, whose only inputs are
  /// the batch's tensors, what drawn() gives and the model's own tensors.
  std::string no_graphs = {};
  /// Further settings of `train` that not every model has, as it follows them.
  std::vector<SwitchInForce> in_force = {};
  /// What it does with each row of a step, forwards and backwards.
  RowWork row_work = {};
  /// How its weights are written for other programs, with the files that these
  /// expect beside them.
  WeightsForm form = {};
  /// What the numbers mean that it gives for each row.
  AnswerFacts answers = {};
  /// So many texts() at most.
  std::int64_t texts = 0;
  /// What must be the same in a run that continues from a checkpoint.
  Json description;
};

}  // namespace penstock
