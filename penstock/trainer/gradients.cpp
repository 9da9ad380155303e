#include "penstock/trainer/gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

namespace penstock {
namespace {

// As PyTorch's GradScaler has them.
constexpr double kFirstScale = 65536, kGrowth = 2, kBackoff = 0.5;
constexpr std::int64_t kStepsUntilGrowth = 2000;

}  // namespace

std::vector<at::Tensor> Gradients::set_aside(bool first) {
  std::vector<at::Tensor> earlier;
  for (Parameter& parameter : parameters_) {
    at::Tensor& gradient = parameter.value.mutable_grad();
    earlier.push_back(first ? at::Tensor() : gradient);
    gradient.reset();
  }
  return earlier;
}

void Gradients::put_back(const std::vector<at::Tensor>& earlier) {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].value.mutable_grad() = earlier[i];
}

void Gradients::add(const std::vector<at::Tensor>& earlier) {
  at::NoGradGuard no_graph;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (earlier[i].defined())
      parameters_[i].value.mutable_grad().add_(earlier[i]);
}

// All copies are made before any gradient is set: one that runs out of memory
// changes none.
void Gradients::receive(const std::vector<at::Tensor>& made, bool copy) {
  const at::NoGradGuard no_graph;
  std::vector<at::Tensor> here, there, sums, more;
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (const at::Tensor& sum = parameters_[i].value.grad(); sum.defined()) {
      sums.push_back(sum), more.push_back(made[i]);
      continue;
    }
    first.push_back(i);
    there.push_back(made[i]);
    here.push_back(copy ? at::empty_like(made[i]) : made[i]);
  }
  if (copy && !here.empty()) at::_foreach_copy_(here, there);
  if (!sums.empty()) at::_foreach_add_(sums, more);
  for (std::size_t i = 0; i < first.size(); ++i)
    parameters_[first[i]].value.mutable_grad() = here[i];
}

void Gradients::complete() {
  for (Parameter& parameter : parameters_)
    if (!parameter.value.grad().defined())
      parameter.value.mutable_grad() = at::zeros_like(parameter.value.detach());
}

std::vector<Parameter> Gradients::kept() const {
  std::vector<Parameter> kept;
  for (const Parameter& parameter : parameters_)
    if (parameter.value.grad().defined())
      kept.push_back({parameter.name, parameter.value.grad()});
  return kept;
}

void Gradients::begin_anew(bool kept) {
  for (Parameter& parameter : parameters_)
    parameter.value.mutable_grad() =
        kept ? at::zeros_like(parameter.value.detach()) : at::Tensor();
}

std::vector<at::Tensor> Gradients::all() const {
  std::vector<at::Tensor> all;
  for (const Parameter& parameter : parameters_)
    all.push_back(parameter.value.grad());
  return all;
}

CountedSteps::CountedSteps(bool on, const at::TensorOptions& options)
    : on_(on) {
  if (!on) return;
  sum_ = at::zeros({}, options.dtype(at::kFloat));
  kept_ = sum_.clone();
}

at::Tensor CountedSteps::weighted(const at::Tensor& loss,
                                  const at::Tensor& counted) const {
  return on_ ? loss * counted : loss;
}

void CountedSteps::add(bool first, const at::Tensor& counted) {
  if (!on_) return;
  at::NoGradGuard no_graph;
  if (first) sum_.zero_();
  sum_.add_(counted);
}

void CountedSteps::keep() {
  if (on_) kept_.copy_(sum_);
}

void CountedSteps::put_back() {
  if (on_) sum_.copy_(kept_);
}

// The steps of a group left sum over i of c_i g_i, where g_i is the gradient of
// a mean over c_i tokens or rows. Divided by the sum of c_i that is the
// gradient of the mean over all of them, as one large batch would have it.
void CountedSteps::divide(const std::vector<at::Tensor>& gradients) {
  if (!on_) return;
  at::NoGradGuard no_graph;
  at::_foreach_div_(gradients, sum_.clamp_min(kLeastCount));
}

std::vector<Parameter> CountedSteps::state() const {
  if (!on_) return {};
  return {{"counted", sum_}};
}

LossScale::LossScale(bool on, const at::TensorOptions& options) : on_(on) {
  if (!on) return;
  scale_ = at::full({1}, kFirstScale, options.dtype(at::kFloat));
  since_ = at::zeros({1}, options.dtype(at::kInt));
  infinite_ = at::zeros({1}, options.dtype(at::kFloat));
}

at::Tensor LossScale::scaled(const at::Tensor& loss) const {
  return on_ ? loss * scale_[0] : loss;
}

// The check and the division are one kernel over all gradients; its answer
// stays on the device, where the optimiser's kernel reads it.
at::Tensor LossScale::unscale(const std::vector<at::Tensor>& gradients) {
  if (!on_) return {};
  infinite_.zero_();
  at::Tensor inverse = scale_.reciprocal();
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, infinite_, inverse);
  return infinite_[0];
}

void LossScale::update() {
  if (on_)
    at::_amp_update_scale_(scale_, since_, infinite_, kGrowth, kBackoff,
                           kStepsUntilGrowth);
}

std::vector<Parameter> LossScale::state() const {
  if (!on_) return {};
  return {{"scale", scale_}, {"since", since_}};
}

}  // namespace penstock
