#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "penstock/session/session.h"
#include "penstock/trainer/parameter.h"

namespace penstock {

/// What a stepper that is one of several ranks asks of the others, for tensors.
/// Every rank makes the same calls.
class RankShare {
 public:
  explicit RankShare(RankGroup& ranks) : ranks_(ranks) {}
  bool first() const { return ranks_.first(); }

  /// Throws Error(out_of_memory) on all ranks where one has no memory.
  const Vote& vote(const RankGroup::Share& share);
  /// Replaces them by their sums over all ranks.
  void sum(const std::vector<at::Tensor>& tensors);
  /// Replaces them by those of rank 0.
  void copy_from_first(const std::vector<Parameter>& tensors);
  /// Throws Error(device), code "ranks.differ", where a rank has other bytes.
  void check_same(const std::vector<Parameter>& tensors);

 private:
  RankGroup& ranks_;
};

std::vector<at::Tensor> values_of(const std::vector<Parameter>& parameters);

}  // namespace penstock
