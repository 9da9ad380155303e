#include "penstock/trainer/weight_files.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "penstock/trainer/borrowed.h"

namespace penstock {
namespace {

bool fits(Dtype dtype) {
  return dtype == Dtype::float32 || dtype == Dtype::float64 ||
         dtype == Dtype::float16 || dtype == Dtype::bfloat16 ||
         dtype == Dtype::int64 || dtype == Dtype::boolean;
}

constexpr const char* kNameModel =
    "name the safetensors file of a model, its "
    "model.safetensors.index.json, or their folder";

}  // namespace

std::vector<std::int64_t> WeightFiles::shape_of(const std::string& name) const {
  return mapped_.at(name).view.shape;
}

at::Tensor WeightFiles::take(const std::string& name,
                             at::IntArrayRef shape) const {
  const auto& [file, view] = mapped_.at(name);
  if (view.shape != shape.vec() || !fits(view.dtype))
    refuse_weights(file,
                   "tensor '" + name + "' is " +
                       std::string(name_of(view.dtype)) + " " +
                       text_of(view.shape) + ", expected numbers of shape " +
                       text_of(shape.vec()),
                   kNameModel);
  taken_.insert(name);
  // The header of a safetensors file has any length unless its writer pads it,
  // so a tensor may begin anywhere. An aligned one is used where it is mapped,
  // without a copy.
  if (reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.dtype) == 0)
    return borrowed(view);
  at::Tensor copy = at::empty(shape, borrowed(view).options());
  std::memcpy(copy.mutable_data_ptr(), view.data, view.bytes());
  return copy;
}

std::optional<Nf4Parts> WeightFiles::take_nf4(const std::string& name,
                                              at::IntArrayRef shape) const {
  std::optional<Nf4Parts> parts = nf4_parts(mapped_, name);
  if (!parts) return parts;
  if (parts->shape != shape.vec())
    refuse_weights(mapped_.at(name).file,
                   "tensor '" + name + "' has the shape " +
                       text_of(parts->shape) + ", expected " +
                       text_of(shape.vec()),
                   kNameModel);
  for (const std::string& one : names_of_nf4(name)) taken_.insert(one);
  return parts;
}

void WeightFiles::check_all_taken(const std::vector<std::string>& known) const {
  for (const auto& [name, tensor] : mapped_.all()) {
    if (taken_.contains(name)) continue;
    if (std::ranges::none_of(known, [&, &name = name](const std::string& end) {
          return name.ends_with(end);
        }))
      refuse_weights(tensor.file, "the model has no tensor '" + name + "'",
                     kNameModel);
  }
}

}  // namespace penstock
