#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace penstock {

/// What libtorch holds at most while `work` runs, beside what it held before:
/// bytes of tensors on that device, on this thread and those of backward().
/// Memory that kernels take for themselves is not seen.
std::int64_t most_held(at::DeviceType device,
                       const std::function<void()>& work);

/// Operations in a second of the fastest of some large products of matrices of
/// this type, on this device now: what a step can be compared with.
double measured_peak_flops(const at::TensorOptions& options);

}  // namespace penstock
