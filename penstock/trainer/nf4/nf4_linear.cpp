#include "penstock/trainer/nf4/nf4_linear.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include "penstock/trainer/nf4/nf4_kernels.h"

namespace penstock {
namespace {

/// The weight, as libtorch keeps what is not a tensor.
struct KeptWeight : torch::CustomClassHolder {
  explicit KeptWeight(std::shared_ptr<const Nf4Weight> of)
      : weight(std::move(of)) {}
  std::shared_ptr<const Nf4Weight> weight;
};

class Nf4Linear : public torch::autograd::Function<Nf4Linear> {
 public:
  // The dispatcher would cast the operands to the type of autocast.
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& x,
                            const std::optional<at::Tensor>& bias,
                            const c10::intrusive_ptr<KeptWeight>& weight,
                            std::int64_t compute) {
    const c10::impl::ExcludeDispatchKeyGuard as_told(
        c10::autocast_dispatch_keyset);
    const auto type = static_cast<at::ScalarType>(compute);
    context->saved_data["weight"] = c10::IValue::make_capsule(weight);
    context->saved_data["compute"] = compute;
    context->saved_data["type"] = static_cast<std::int64_t>(x.scalar_type());
    std::optional<at::Tensor> added;
    if (bias) added = bias->to(type);
    return at::linear(x.to(type), dequantized(*weight->weight).to(type), added);
  }

  // The gradient of x alone is wanted: neither x nor W x is needed for it.
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list gradients) {
    const c10::impl::ExcludeDispatchKeyGuard as_told(
        c10::autocast_dispatch_keyset);
    const auto kept = c10::static_intrusive_pointer_cast<KeptWeight>(
        context->saved_data["weight"].toCapsule());
    const auto compute =
        static_cast<at::ScalarType>(context->saved_data["compute"].toInt());
    const auto type =
        static_cast<at::ScalarType>(context->saved_data["type"].toInt());
    at::Tensor of_x = at::matmul(gradients[0].to(compute),
                                 dequantized(*kept->weight).to(compute))
                          .to(type);
    return {of_x, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor dequantized(const Nf4Weight& weight) {
  if (weight.codes.is_cpu()) return dequantized_on_host(weight);
  if (const Nf4Kernels* kernels = nf4_kernels(weight.codes.device()))
    return kernels->dequantized(weight);
  return dequantized_by_operations(weight);
}

at::Tensor nf4_linear(const at::Tensor& x,
                      const std::shared_ptr<const Nf4Weight>& weight,
                      const std::optional<at::Tensor>& bias,
                      at::ScalarType compute) {
  return Nf4Linear::apply(x, bias, c10::make_intrusive<KeptWeight>(weight),
                          static_cast<std::int64_t>(compute));
}

}  // namespace penstock
