#include "penstock/trainer/graphs/fixed_rows.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "penstock/trainer/borrowed.h"

namespace penstock {
namespace {

// What libtorch tells cuBLAS at most of a GPU's memory, and a cache line, to
// which batches on the host are aligned.
std::size_t alignment_of(const TensorView& view) {
  return view.memory == MemoryKind::cpu ? 64 : 256;
}

std::size_t place_of(const TensorView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % alignment_of(view);
}

/// Memory for the bytes of a view, with room to place them like these.
at::Tensor room_like(const TensorView& view) {
  return at::empty(
      {static_cast<std::int64_t>(view.bytes() + alignment_of(view))},
      at::TensorOptions(at::kByte).device(borrowed(view).device()));
}

/// The view's first byte in that memory.
std::byte* placed_in(const at::Tensor& room, const TensorView& view) {
  TensorView there = view;
  there.data = static_cast<std::byte*>(room.mutable_data_ptr());
  return there.data + (alignment_of(view) + place_of(view) - place_of(there)) %
                          alignment_of(view);
}

}  // namespace

RowsShape shape_of(const BatchRows& batch) {
  RowsShape shape{.rows = batch.rows(), .is_slice = batch.is_slice()};
  for (const NamedTensor& tensor : batch.tensors())
    shape.tensors.push_back({.name = tensor.name,
                             .dtype = tensor.view.dtype,
                             .shape = tensor.view.shape,
                             .place = place_of(tensor.view)});
  return shape;
}

FixedRows::FixedRows(const BatchRows& first) : rows_(first) {
  std::vector<NamedTensor> tensors = first.tensors();
  for (NamedTensor& tensor : tensors) {
    memory_.push_back(room_like(tensor.view));
    tensor.view.data = placed_in(memory_.back(), tensor.view);
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
