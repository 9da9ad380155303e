#include "penstock/trainer/batch_rows.h"

#include <ATen/ops/ones.h>

#include <algorithm>
#include <string_view>

#include "penstock/base/error.h"
#include "penstock/trainer/borrowed.h"

namespace penstock {

BatchRows::BatchRows(const Batch& batch)
    : rows_(batch.rows()),
      tensors_(batch.tensors().begin(), batch.tensors().end()),
      ids_(batch.ids()),
      rejected_(batch.rejected().begin(), batch.rejected().end()) {}

// Offsets of packed elements are one more than there are ranges, of which each
// row has one or more: they are never as many as there are rows.
BatchRows BatchRows::slice(std::int64_t begin, std::int64_t end) const {
  if (begin == 0 && end == rows_) return *this;
  BatchRows some = *this;
  some.rows_ = end - begin;
  some.is_slice_ = true;
  for (NamedTensor& tensor : some.tensors_) {
    TensorView& view = tensor.view;
    if (view.shape.empty() || view.shape[0] != rows_) continue;
    view.data = static_cast<std::byte*>(view.data) +
                view.bytes() / static_cast<std::size_t>(rows_) *
                    static_cast<std::size_t>(begin);
    view.shape[0] = some.rows_;
  }
  if (std::ssize(ids_) == rows_)
    some.ids_ = ids_.subspan(static_cast<std::size_t>(begin),
                             static_cast<std::size_t>(some.rows_));
  some.rejected_.clear();
  for (RejectedSample sample : rejected_)
    if (sample.row >= begin && sample.row < end) {
      sample.row -= begin;
      some.rejected_.push_back(std::move(sample));
    }
  return some;
}

BatchRows BatchRows::copied_to(std::vector<NamedTensor> tensors) const {
  BatchRows copy(rows_, std::move(tensors), {});
  copy.is_slice_ = is_slice_;
  return copy;
}

namespace {

const NamedTensor* find_tensor(const BatchRows& batch, std::string_view name) {
  const std::vector<NamedTensor>& tensors = batch.tensors();
  auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace

bool has_tensor(const BatchRows& batch, const std::string& name) {
  return find_tensor(batch, name) != nullptr;
}

at::Tensor tensor_of(const BatchRows& batch, const std::string& name) {
  const NamedTensor* found = find_tensor(batch, name);
  PENSTOCK_ASSERT(found != nullptr, "a batch has its fields");
  return borrowed(found->view);
}

// Where batches are padded, or bad samples masked, one more tensor marks them.
at::Tensor weights_of(const BatchRows& batch) {
  if (const NamedTensor* weight = find_tensor(batch, kWeight))
    return borrowed(weight->view);
  at::Tensor any = borrowed(batch.tensors()[0].view);
  return at::ones({batch.rows()}, any.options().dtype(at::kFloat));
}

}  // namespace penstock
