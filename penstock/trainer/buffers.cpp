#include "penstock/trainer/buffers.h"

#include <ATen/ops/_foreach_copy.h>
#include <c10/core/GradMode.h>

namespace penstock {

Buffers::Buffers(const std::vector<Parameter>& buffers) {
  for (const Parameter& buffer : buffers) {
    buffers_.push_back(buffer.value);
    kept_.push_back(buffer.value.clone());
  }
}

void Buffers::keep() {
  const at::NoGradGuard no_graph;
  if (!buffers_.empty()) at::_foreach_copy_(kept_, buffers_);
}

// A step that failed may have moved running statistics, which no gradient
// undoes: they become what keep() saw.
void Buffers::put_back() {
  const at::NoGradGuard no_graph;
  if (!buffers_.empty()) at::_foreach_copy_(buffers_, kept_);
}

}  // namespace penstock
