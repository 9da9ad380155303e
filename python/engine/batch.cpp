#include "python/engine/batch.h"

namespace penstock::python {

Field NamedBatch::field(std::size_t place) const {
  return field(held_->batch().tensors()[place]);
}

const NamedTensor* NamedBatch::find(std::string_view name) const {
  for (const NamedTensor& tensor : held_->batch().tensors())
    if (tensor.name == name) return &tensor;
  return nullptr;
}

std::vector<std::string> NamedBatch::names() const {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : held_->batch().tensors())
    names.push_back(tensor.name);
  return names;
}

}  // namespace penstock::python
