#include "penstock/session/weights.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

constexpr std::string_view kWeights = "model.", kAverages = "ema.";

/// The weights among all that a state or a checkpoint of ours holds.
std::map<std::string, TensorView> weights_among(
    const std::vector<NamedTensor>& tensors) {
  std::map<std::string, TensorView> weights;
  for (std::string_view prefix : {kWeights, kAverages})
    for (const NamedTensor& tensor : tensors)
      if (tensor.name.starts_with(prefix))
        weights[tensor.name.substr(prefix.size())] = tensor.view;
  return weights;
}

std::string described(const TensorView& view) {
  return std::string(name_of(view.dtype)) + " " + text_of(view.shape);
}

[[noreturn]] void refuse(const std::string& path, std::string why) {
  refuse_weights(path, std::move(why),
                 "name a file with weights of this model: the result of "
                 "--output, or a checkpoint");
}

}  // namespace

std::map<std::string, TensorView> weights_in(const SafetensorsView& file) {
  if (file.remarks.is_object() && file.remarks.find(kModelRemark) != nullptr)
    return weights_among(file.tensors);
  std::map<std::string, TensorView> weights;
  for (const NamedTensor& tensor : file.tensors)
    weights[tensor.name] = tensor.view;
  return weights;
}

void refuse_weights(const std::string& where, std::string why,
                    std::string next) {
  throw Error(ErrorKind::request,
              {.code = "model.weights",
               .what = "cannot start from the weights of model.path",
               .where = where,
               .why = std::move(why),
               .next = std::move(next)});
}

std::vector<NamedTensor> kept_weights(const ModelState& state) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, view] : weights_among(state.tensors))
    tensors.push_back({name, view});
  return tensors;
}

Json weights_remarks() {
  Json remarks;
  remarks["format"] = "pt";  // without it Transformers refuses the file
  return remarks;
}

std::string weights_file(const ModelState& state) {
  return safetensors(kept_weights(state), weights_remarks());
}

ModelState with_weights(ModelState state, const std::string& path) {
  std::string bytes;
  try {
    bytes = real_files().read(path);
  } catch (const Error& error) {
    refuse(path, error.parts().why);
  }
  const auto found = weights_in(view_safetensors(bytes, path));
  const auto ours = weights_among(state.tensors);
  for (const auto& [name, view] : ours) {
    auto at = found.find(name);
    if (at == found.end())
      refuse(path, "the file has no tensor '" + name + "'");
    if (at->second.dtype != view.dtype || at->second.shape != view.shape)
      refuse(path, "tensor '" + name + "' is " + described(at->second) +
                       ", expected " + described(view));
  }
  for (const auto& [name, view] : found)
    if (!ours.contains(name))
      refuse(path, "the model has no tensor '" + name + "'");
  for (std::string_view prefix : {kWeights, kAverages})
    for (const NamedTensor& tensor : state.tensors)
      if (tensor.name.starts_with(prefix)) {
        const TensorView& from = found.at(tensor.name.substr(prefix.size()));
        std::memcpy(tensor.view.data, from.data, from.bytes());
      }
  return state;
}

}  // namespace penstock
