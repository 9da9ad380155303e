#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StreamGuard.h>

#include <optional>

#include "penstock/device/device.h"

namespace penstock {

/// A view as a tensor, without a copy. The memory must outlive whatever is
/// queued on it: on the cpu that is over when a call returns.
at::Tensor borrowed(const TensorView& view);

/// The type of a tensor that is part of a model's state: float32, float64,
/// int32 or int64.
Dtype dtype_of(const at::Tensor& tensor);
/// The numbers of such a tensor in the order in which they lie in memory, which
/// has no gaps: shape {numel}.
TensorView numbers_of(const at::Tensor& tensor);

/// Where a device's tensors live, in libtorch's words. For cuda it loads
/// libtorch's CUDA libraries, which must happen before anything else is asked
/// of libtorch in this process. Throws Error(device) when they are missing,
/// Error(request) for a device that libtorch cannot use.
at::Device torch_device(const Device& device);

/// While it lives, what this thread asks of libtorch is queued on `stream`. On
/// the cpu there is nothing to do.
class OnStream {
 public:
  OnStream(at::Device device, const Stream& stream);

 private:
  std::optional<c10::StreamGuard> guard_;
};

}  // namespace penstock
