#include "penstock/transforms/field_facts.h"

#include <algorithm>
#include <utility>

namespace penstock {

// The group begins where its widest element may: so offsets within it do not
// depend on what comes before.
void RowLayout::append(std::vector<TensorSpec> more) {
  std::size_t widest = 1;
  for (const TensorSpec& tensor : more)
    widest = std::max(widest, size_of(tensor.dtype));
  round_up(widest);
  for (TensorSpec& tensor : more) {
    round_up(size_of(tensor.dtype));
    tensor.offset = row_bytes;
    tensor.bytes = static_cast<std::size_t>(elements_of(tensor.row_shape)) *
                   size_of(tensor.dtype);
    row_bytes = tensor.offset + tensor.bytes;
    tensors.push_back(std::move(tensor));
  }
}

std::vector<Output> outputs_of(const RowLayout& layout) {
  std::vector<Output> outputs;
  for (const TensorSpec& tensor : layout.tensors)
    outputs.push_back({.name = tensor.name,
                       .dtype = tensor.dtype,
                       .row_shape = tensor.row_shape});
  return outputs;
}

}  // namespace penstock
