#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "penstock/trainer/parameter.h"

namespace penstock {

/// What a step changes of a model besides its weights: the statistics of batch
/// normalisation. A copy is kept during the step, so that one that fails
/// changes none.
class Buffers {
 public:
  explicit Buffers(const std::vector<Parameter>& buffers);

  void keep();
  void put_back();

 private:
  std::vector<at::Tensor> buffers_, kept_;
};

}  // namespace penstock
