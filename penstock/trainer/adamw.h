#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "penstock/trainer/parameter.h"

namespace penstock {

/// AdamW (Loshchilov and Hutter 2019) by libtorch's fused kernels: few launches
/// for all parameters. Decay is for matrices alone, never for biases.
class AdamW {
 public:
  struct Options {
    double weight_decay = 0.01;
    double clip_norm = 0;  ///< of all gradients together; 0: no clipping
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
  };

  /// Shares the parameters' memory.
  AdamW(const std::vector<Parameter>& parameters, const Options& options);

  /// Clips the gradients that backward() left, moves the parameters, and
  /// clears the gradients. Never waits for the device. `left_out`, where it is
  /// defined, is float32, []: 1 leaves everything but the gradients unchanged.
  void step(double learning_rate, const at::Tensor& left_out = {});
  /// step() does so, too.
  void forget_gradients();

  /// Moments and the count of steps, by name: all that the next step depends
  /// on beside the parameters. They share memory with the optimiser.
  std::vector<Parameter> state() const;

 private:
  /// Parameters with one decay, and what belongs to each.
  struct Group {
    double weight_decay = 0;
    std::vector<Parameter> parameters;
    std::vector<at::Tensor> first_moments, second_moments;
    /// The same memory as the kernel takes it: see in_memory_order().
    std::vector<at::Tensor> values, first, second;
  };
  /// Of one group; each parameter must have one.
  static std::vector<at::Tensor> gradients_of(const Group& group);
  void clip(std::array<std::vector<at::Tensor>, 2>& gradients) const;

  Options options_;
  std::array<Group, 2> groups_;  // matrices, and all others
  at::Tensor steps_;             // taken; [1], float32
};

}  // namespace penstock
