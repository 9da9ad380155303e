#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "penstock/trainer/parameter.h"

namespace penstock {

/// Moving averages of weights over time: after each move they are `decay` of
/// what they were and the rest of the weights.
class Averages {
 public:
  /// With a decay of 0 no averages are kept.
  Averages(const std::vector<Parameter>& parameters, double decay);

  void update();
  /// Whether the model computes with them, or with the weights that learn.
  /// Gives what it was before.
  bool use(bool averages);
  /// By the weights' names; they share memory. Not while they are used.
  std::vector<Parameter> state() const;

 private:
  const double decay_;
  bool used_ = false;
  std::vector<Parameter> parameters_;
  std::vector<at::Tensor> weights_, averages_;  // share what is learned, is not
};

}  // namespace penstock
