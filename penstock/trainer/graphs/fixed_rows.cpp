#include "penstock/trainer/graphs/fixed_rows.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "penstock/trainer/borrowed.h"

namespace penstock {
namespace {

std::size_t place_of_address(const std::byte* data) {
  return reinterpret_cast<std::uintptr_t>(data) % RowsShape::kPlaces;
}

/// The first byte of `memory` whose address ends like that of `data`.
std::byte* placed_like(const std::byte* data, const at::Tensor& memory) {
  auto* first = static_cast<std::byte*>(memory.mutable_data_ptr());
  return first + (RowsShape::kPlaces + place_of_address(data) -
                  place_of_address(first)) %
                     RowsShape::kPlaces;
}

}  // namespace

RowsShape shape_of(const BatchRows& batch) {
  RowsShape shape{.rows = batch.rows(), .is_slice = batch.is_slice()};
  for (const NamedTensor& tensor : batch.tensors())
    shape.tensors.push_back({.name = tensor.name,
                             .dtype = tensor.view.dtype,
                             .shape = tensor.view.shape,
                             .place = place_of_address(tensor.view.data)});
  return shape;
}

FixedRows::FixedRows(const BatchRows& first) : rows_(first) {
  std::vector<NamedTensor> tensors = first.tensors();
  for (NamedTensor& tensor : tensors) {
    const at::TensorOptions options(borrowed(tensor.view).device());
    memory_.push_back(at::empty(
        {static_cast<std::int64_t>(tensor.view.bytes() + RowsShape::kPlaces)},
        options.dtype(at::kByte)));
    tensor.view.data = placed_like(tensor.view.data, memory_.back());
  }
  rows_ = first.copied_to(std::move(tensors));
  copy(first);
}

void FixedRows::copy(const BatchRows& batch) const {
  for (std::size_t i = 0; i < batch.tensors().size(); ++i)
    borrowed(rows_.tensors()[i].view)
        .copy_(borrowed(batch.tensors()[i].view), /*non_blocking=*/true);
}

}  // namespace penstock
