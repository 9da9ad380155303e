#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "penstock/trainer/nf4/nf4_weight.h"

namespace penstock {

/// [out, in] of its `dtype`: on the host by the functions that define it; on a
/// GPU by bitsandbytes' kernels where they are there, else by operations of
/// libtorch. The bits are the same.
at::Tensor dequantized(const Nf4Weight& weight);

/// x W^T + bias, computed in `compute`. Gradients go to `x` alone. Nothing of W
/// but its codes is kept for them: backward() dequantises it again, so that no
/// more than one such weight is ever there dequantised.
/// `x`: [.., in]; `bias`: [out] -> [.., out], of type `compute`.
at::Tensor nf4_linear(const at::Tensor& x,
                      const std::shared_ptr<const Nf4Weight>& weight,
                      const std::optional<at::Tensor>& bias,
                      at::ScalarType compute);

}  // namespace penstock
