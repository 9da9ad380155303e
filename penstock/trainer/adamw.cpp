#include "penstock/trainer/adamw.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <optional>

#include "penstock/base/error.h"

namespace penstock {

namespace {

// The CPU's kernel copies each tensor that is not contiguous, as weights of
// convolutions in channels_last are, when it comes to that tensor: it could run
// out of memory with some of the weights moved already, and it would copy all
// of them in each step. Each number is moved by itself, so a view of the memory
// from its first number to its last does as well.
at::Tensor in_memory_order(const at::Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  PENSTOCK_ASSERT(tensor.is_non_overlapping_and_dense(),
                  "a parameter has no gaps");
  return tensor.as_strided({tensor.numel()}, {1});
}

}  // namespace

AdamW::AdamW(const std::vector<Parameter>& parameters, const Options& options)
    : options_(options) {
  PENSTOCK_ASSERT(!parameters.empty(), "there is something to learn");
  groups_[0].weight_decay = options.weight_decay;
  for (const Parameter& parameter : parameters) {
    Group& group = groups_[parameter.value.dim() >= 2 ? 0 : 1];
    group.parameters.push_back(parameter);
    const at::Tensor value = parameter.value.detach();
    group.first_moments.push_back(at::zeros_like(value));
    group.second_moments.push_back(at::zeros_like(value));
    group.values.push_back(in_memory_order(value));
    group.first.push_back(in_memory_order(group.first_moments.back()));
    group.second.push_back(in_memory_order(group.second_moments.back()));
  }
  steps_ = at::zeros(
      {1},
      parameters[0].value.options().dtype(at::kFloat).requires_grad(false));
}

// A gradient may be laid out in another way than its parameter, as those of
// convolutions are. It is copied before any of the weights is moved.
std::vector<at::Tensor> AdamW::gradients_of(const Group& group) {
  std::vector<at::Tensor> gradients;
  for (const Parameter& parameter : group.parameters) {
    const at::Tensor& gradient = parameter.value.grad();
    PENSTOCK_ASSERT(gradient.defined(),
                    "backward() leaves every parameter a gradient");
    gradients.push_back(gradient.strides() == parameter.value.strides()
                            ? gradient
                            : at::empty_like(parameter.value).copy_(gradient));
  }
  return gradients;
}

// With G the norm of all gradients together, each is multiplied by min(1,
// clip_norm / (G + 1e-6)), as torch.nn.utils.clip_grad_norm_ does. The factor
// stays on the device, so no thread waits for it.
void AdamW::clip(std::array<std::vector<at::Tensor>, 2>& gradients) const {
  std::vector<at::Tensor> norms;
  for (const std::vector<at::Tensor>& group : gradients) {
    if (group.empty()) continue;
    for (const at::Tensor& norm : at::_foreach_norm(group))
      norms.push_back(norm);
  }
  at::Tensor norm = at::stack(norms).norm();
  at::Tensor factor = (options_.clip_norm / (norm + 1e-6)).clamp_max(1);
  for (std::vector<at::Tensor>& group : gradients)
    if (!group.empty()) at::_foreach_mul_(group, factor);
}

// With the gradient g, the rate r and the decay d of its group, step t makes of
// a weight w
//   m = beta1 m + (1 - beta1) g,    v = beta2 v + (1 - beta2) g^2
//   w = (1 - r d) w - r (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
// The decay is decoupled from the gradient, which is what the W stands for.
// Where `left_out` is 1 the kernel changes nothing, and the count that it was
// given goes back by one, all on the device.
void AdamW::step(double learning_rate, const at::Tensor& left_out) {
  std::optional<at::Tensor> skipped;
  if (left_out.defined()) skipped = left_out;
  at::NoGradGuard no_graph;
  std::array gradients{gradients_of(groups_[0]), gradients_of(groups_[1])};
  if (options_.clip_norm > 0) clip(gradients);
  for (std::vector<at::Tensor>& group : gradients)
    for (at::Tensor& gradient : group) gradient = in_memory_order(gradient);
  steps_.add_(1);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    if (group.values.empty()) continue;
    // The kernels read the count of each parameter; ours are all the same.
    std::vector<at::Tensor> steps(group.values.size(), steps_);
    at::_fused_adamw_(group.values, gradients[g], group.first, group.second, {},
                      steps, learning_rate, options_.beta1, options_.beta2,
                      group.weight_decay, options_.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false,
                      /*grad_scale=*/{}, skipped);
  }
  if (skipped) steps_.sub_(*skipped);
  forget_gradients();
}

void AdamW::forget_gradients() {
  for (Group& group : groups_)
    for (Parameter& parameter : group.parameters)
      parameter.value.mutable_grad().reset();
}

std::vector<Parameter> AdamW::state() const {
  std::vector<Parameter> state{{"steps", steps_}};
  for (const Group& group : groups_)
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      const std::string& name = group.parameters[i].name;
      state.push_back({"first_moment." + name, group.first_moments[i]});
      state.push_back({"second_moment." + name, group.second_moments[i]});
    }
  return state;
}

}  // namespace penstock
