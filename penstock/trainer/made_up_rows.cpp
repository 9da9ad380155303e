#include "penstock/trainer/made_up_rows.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <numeric>

namespace penstock {

MadeUpRows::MadeUpRows(const FittedFields& data, at::Device device)
    : device_(device), tensors_(made_up_tensors(data)) {}

std::int64_t MadeUpRows::bytes() const {
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : memory_)
    bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

BatchRows MadeUpRows::rows(std::int64_t rows) {
  memory_.clear();
  ids_.resize(static_cast<std::size_t>(rows));
  std::iota(ids_.begin(), ids_.end(), SampleId{0});
  const auto bytes = at::TensorOptions(at::kByte).device(device_);
  std::vector<NamedTensor> tensors;
  for (const MadeUpTensor& tensor : tensors_) {
    TensorView view{.dtype = tensor.dtype, .shape = tensor.row_shape};
    if (device_.is_cuda())
      view.memory = MemoryKind::cuda, view.device_id = device_.index();
    view.shape.insert(view.shape.begin(), tensor.offsets > 0 ? rows + 1 : rows);
    if (tensor.offsets > 0)
      memory_.push_back(at::arange(0, (rows + 1) * tensor.offsets,
                                   tensor.offsets, bytes.dtype(at::kInt)));
    else
      memory_.push_back(
          at::zeros({static_cast<std::int64_t>(view.bytes())}, bytes));
    view.data = static_cast<std::byte*>(memory_.back().mutable_data_ptr());
    tensors.push_back({tensor.name, std::move(view)});
  }
  return {rows, std::move(tensors), ids_};
}

}  // namespace penstock
