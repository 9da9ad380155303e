#include "penstock/trainer/recompute.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace penstock {
namespace {

/// The part, as libtorch keeps what is no tensor.
struct KeptPart : torch::CustomClassHolder {
  explicit KeptPart(Part of) : part(std::move(of)) {}
  Part part;
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  /// `learns` requires a gradient: where the input does not, the weights that
  /// `part` holds still do.
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor& /*learns*/,
                            const c10::intrusive_ptr<KeptPart>& part) {
    context->save_for_backward({input});
    context->saved_data["part"] = c10::IValue::make_capsule(part);
    return part->part(input, false);
  }

  // The input is detached, so that the inner backward() ends here. It adds to
  // the gradients of the weights that `part` uses, since these are not inputs
  // of this function; only the input's gradient is returned. The graph must
  // be switched on, since backward() runs without it.
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list gradients) {
    const at::Tensor saved = context->get_saved_variables()[0];
    auto part = c10::static_intrusive_pointer_cast<KeptPart>(
        context->saved_data["part"].toCapsule());
    at::Tensor input = saved.detach();
    input.requires_grad_(saved.requires_grad());
    at::Tensor output;
    {
      at::AutoGradMode graph(true);
      output = part->part(input, true);
    }
    torch::autograd::backward({output}, {gradients[0]});
    return {input.grad(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor recomputed(const Part& part, const at::Tensor& input) {
  if (!at::GradMode::is_enabled()) return part(input, false);
  at::Tensor learns = at::empty({0}, input.options().dtype(at::kFloat));
  learns.requires_grad_();
  return Recompute::apply(input, learns, c10::make_intrusive<KeptPart>(part));
}

}  // namespace penstock
