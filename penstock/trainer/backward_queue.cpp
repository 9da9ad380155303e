#include "penstock/trainer/backward_queue.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>

#include "penstock/base/log.h"

namespace penstock {

BackwardQueue::BackwardQueue(at::Device device) {
  const at::AutoGradMode graph(true);
  leaf_ = at::ones({1}, at::TensorOptions(at::kFloat).device(device));
  leaf_.requires_grad_();
  root_ = leaf_ * 1;
}

// Tasks are taken by the age of their nodes, the youngest first. This root is
// older than all others, so that those are taken before it, and dropped, since
// their graphs are gone.
void BackwardQueue::empty() const noexcept try {
  root_.backward({}, /*retain_graph=*/true);
  leaf_.mutable_grad().reset();
} catch (...) {
  log_exception(LogLevel::debug, "emptying the queue of backward()");
}

}  // namespace penstock
