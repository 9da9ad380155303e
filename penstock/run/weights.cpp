#include "penstock/run/weights.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "penstock/run/safetensors.h"

namespace penstock {
namespace {

constexpr std::string_view kWeights = "model.", kAverages = "ema.";

/// The weights in a state, by the module's names.
std::map<std::string, const TensorView*> weights_in(const ModelState& state) {
  std::map<std::string, const TensorView*> weights;
  for (std::string_view prefix : {kWeights, kAverages})
    for (const NamedTensor& tensor : state.tensors)
      if (tensor.name.starts_with(prefix))
        weights[tensor.name.substr(prefix.size())] = &tensor.view;
  return weights;
}

/// A checkpoint of ours holds more, and says so.
bool is_checkpoint(const ModelState& file) {
  return file.json.is_object() && file.json.find("penstock_model") != nullptr;
}

std::string described(const TensorView& view) {
  return std::string(name_of(view.dtype)) + " " + text_of(view.shape);
}

[[noreturn]] void refuse(const std::string& path, std::string why) {
  throw Error(ErrorKind::request,
              {.code = "model.weights",
               .what = "cannot begin with the weights of model.path",
               .where = path,
               .why = std::move(why),
               .next = "name a file of this model's weights: what --output "
                       "left, or a checkpoint"});
}

std::map<std::string, const TensorView*> weights_of_file(
    const ModelState& file) {
  if (is_checkpoint(file)) return weights_in(file);
  std::map<std::string, const TensorView*> weights;
  for (const NamedTensor& tensor : file.tensors)
    weights[tensor.name] = &tensor.view;
  return weights;
}

}  // namespace

std::string weights_file(const ModelState& state) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, view] : weights_in(state))
    tensors.push_back({name, *view});
  Json remarks;
  remarks["format"] = "pt";  // without it Transformers refuses the file
  return safetensors(tensors, remarks);
}

ModelState with_weights(ModelState state, const std::string& path) {
  std::string bytes;
  try {
    bytes = real_files().read(path);
  } catch (const Error& error) {
    refuse(path, error.parts().why);
  }
  const ModelState file = read_safetensors(bytes, path);
  const auto found = weights_of_file(file);
  const auto ours = weights_in(state);
  for (const auto& [name, view] : ours) {
    auto at = found.find(name);
    if (at == found.end()) refuse(path, "it has no tensor '" + name + "'");
    if (at->second->dtype != view->dtype || at->second->shape != view->shape)
      refuse(path, "tensor '" + name + "' is " + described(*at->second) +
                       ", expected " + described(*view));
  }
  for (const auto& [name, view] : found)
    if (!ours.contains(name))
      refuse(path, "the model has no tensor '" + name + "'");
  for (std::string_view prefix : {kWeights, kAverages})
    for (const NamedTensor& tensor : state.tensors)
      if (tensor.name.starts_with(prefix)) {
        const TensorView& from = *found.at(tensor.name.substr(prefix.size()));
        std::memcpy(tensor.view.data, from.data, from.bytes());
      }
  return state;
}

}  // namespace penstock
