#include "penstock/trainer/made_up_rows.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

namespace penstock {
namespace {

/// Of a field whose rows differ in length: how long they are at most.
std::int64_t longest_of(const Field& field, const FittedFields& data) {
  const FieldFacts& facts = field.kind->facts();
  if (facts.packing) return facts.packing->size;
  std::int64_t most = 0;
  for (const Output& output : facts.outputs)
    most = std::max<std::int64_t>(most, output.most);
  const Json& found = data.statistics_of(field.name);
  const Json* longest = found.is_object() ? found.find("longest") : nullptr;
  if (longest == nullptr || !longest->is_number()) return most;
  return most == 0 ? longest->integer() : std::min(most, longest->integer());
}

}  // namespace

MadeUpRows::MadeUpRows(const FittedFields& data, at::Device device)
    : device_(device) {
  for (const Field& field : data.fields) {
    const std::int64_t longest = longest_of(field, data);
    for (const Output& output : field.kind->facts().outputs)
      add(output, std::max<std::int64_t>(1, longest));
  }
}

void MadeUpRows::add(const Output& output, std::int64_t longest) {
  Tensor tensor{.name = output.name,
                .dtype = output.dtype,
                .row_shape = output.row_shape};
  if (output.lengths != Lengths::equal)
    tensor.row_shape.insert(tensor.row_shape.begin(), longest);
  tensors_.push_back(std::move(tensor));
  if (!output.own_lengths()) return;
  const bool padded = output.lengths == Lengths::padded;
  const char* ending = padded ? "_lengths" : "_cu_seqlens";
  tensors_.push_back(
      {.name = output.beside.empty() ? output.name + ending : output.beside,
       .dtype = Dtype::int32,
       .row_shape = {},
       .offsets = padded ? 0 : longest});
}

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
  for (const Tensor& tensor : tensors_) {
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
