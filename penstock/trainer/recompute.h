#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace penstock {

/// Part of a network: [..] -> [..]. `again`: it is computed a second time, for
/// its gradients, and must leave no other trace. It sets its own Autocast.
using Part = std::function<at::Tensor(const at::Tensor& input, bool again)>;

/// What `part` gives. Of what it computes only `input` is kept until its
/// gradients are wanted; then it is computed again: less memory, a third more
/// time (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016).
/// The same numbers as without, where `part` draws none.
at::Tensor recomputed(const Part& part, const at::Tensor& input);

}  // namespace penstock
