#pragma once

#include <ATen/core/Tensor.h>

namespace penstock {

/// Empties what a backward() that threw has left in the queue of libtorch's
/// engine: the gradients that were on their way stay there, since the tasks of
/// later graphs come first.
class BackwardQueue {
 public:
  /// Before any graph of the thread that it is to follow.
  explicit BackwardQueue(at::Device device);
  /// On that thread. What fails is logged.
  void empty() const noexcept;

 private:
  at::Tensor leaf_, root_;
};

}  // namespace penstock
