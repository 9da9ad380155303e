#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "penstock/trainer/parameter.h"

namespace penstock {

/// What sums are divided by where nothing counts: losses and gradients are 0.
inline constexpr double kLeastCount = 1e-20;

/// The gradients of steps that together move the weights: those of the earlier
/// ones are kept apart while a step is taken, so that one that fails changes
/// none.
class Gradients {
 public:
  explicit Gradients(std::vector<Parameter> parameters)
      : parameters_(std::move(parameters)) {}

  /// Backward() begins with none. Gives those of the earlier steps, of which
  /// the first step has none.
  std::vector<at::Tensor> set_aside(bool first);
  /// The step failed; or it has left its own, to which these are added.
  void put_back(const std::vector<at::Tensor>& earlier);
  void add(const std::vector<at::Tensor>& earlier);
  /// What backward() would leave if it made these: they are added to what it
  /// left before. Where there is nothing yet, it is these tensors themselves,
  /// or with `copy` copies of them.
  void receive(const std::vector<at::Tensor>& made, bool copy);

  /// Those that backward() has not made are 0: of a rank that has no rows.
  void complete();

  /// What of steps that have not yet moved the weights is part of the state.
  std::vector<Parameter> kept() const;
  /// Makes gradients of 0, to be restored, or none.
  void begin_anew(bool kept);
  std::vector<at::Tensor> all() const;

 private:
  std::vector<Parameter> parameters_;
};

/// What the steps that move the weights together count: each adds its gradients
/// times what it counts, and what comes of them is divided by the sum. Does
/// nothing where there is one step, or each counts the same.
class CountedSteps {
 public:
  CountedSteps(bool on, const at::TensorOptions& options);

  /// The loss that goes backward.
  at::Tensor weighted(const at::Tensor& loss, const at::Tensor& counted) const;
  void add(bool first, const at::Tensor& counted);
  /// What add() changed is undone.
  void keep();
  void put_back();
  void divide(const std::vector<at::Tensor>& gradients);
  bool on() const { return on_; }
  /// By name; they share memory.
  std::vector<Parameter> state() const;

 private:
  const bool on_;
  at::Tensor sum_, kept_;
};

/// Loss scaling for float16, whose small numbers are 0: the loss is multiplied,
/// the gradients divided; where one is infinite, the weights stay and the
/// factor is halved. Does nothing for other precisions.
class LossScale {
 public:
  LossScale(bool on, const at::TensorOptions& options);

  at::Tensor scaled(const at::Tensor& loss) const;
  /// Undoes it. Gives 1 where the step is to be left out, else 0: float32, [];
  /// undefined where there is no scaling. Never waits for the device.
  at::Tensor unscale(const std::vector<at::Tensor>& gradients);
  void update();
  /// By name; they share memory.
  std::vector<Parameter> state() const;

 private:
  const bool on_;
  at::Tensor scale_, since_, infinite_;
};

}  // namespace penstock
