#include "penstock/trainer/state.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <utility>

#include "penstock/trainer/borrowed.h"

namespace penstock {
namespace {

[[noreturn]] void refuse_state(const std::string& name, std::string why) {
  throw Error(ErrorKind::request,
              {.code = "resume.other_model",
               .what = "cannot continue from the checkpoint",
               .where = "tensor '" + name + "'",
               .why = std::move(why),
               .next = "resume with the job that wrote the checkpoint, or "
                       "start a new run"});
}

std::string described(Dtype dtype, const Shape& shape) {
  return std::string(name_of(dtype)) + " " + text_of(shape);
}

}  // namespace

ModelState state_of(const std::vector<Parameter>& tensors,
                    std::vector<std::byte> memory) {
  at::NoGradGuard no_graph;
  ModelState state;
  state.memory = std::move(memory);
  std::size_t bytes = 0;
  for (const Parameter& tensor : tensors) bytes += tensor.value.nbytes();
  state.memory.resize(bytes);
  std::byte* to = state.memory.data();
  for (const Parameter& tensor : tensors) {
    TensorView view{.data = to,
                    .dtype = dtype_of(tensor.value),
                    .shape = tensor.value.sizes().vec()};
    borrowed(view).copy_(tensor.value);
    to += view.bytes();
    state.tensors.push_back({tensor.name, std::move(view)});
  }
  return state;
}

// Everything is compared before anything is copied: a state that does not fit
// leaves the model unchanged.
void copy_state(const ModelState& state,
                const std::vector<Parameter>& tensors) {
  std::map<std::string, const TensorView*> found;
  for (const NamedTensor& tensor : state.tensors)
    found.emplace(tensor.name, &tensor.view);
  for (const Parameter& tensor : tensors) {
    auto at = found.find(tensor.name);
    if (at == found.end())
      refuse_state(tensor.name, "the checkpoint does not have this tensor");
    const TensorView& view = *at->second;
    Dtype dtype = dtype_of(tensor.value);
    Shape shape = tensor.value.sizes().vec();
    if (view.dtype != dtype || view.shape != shape)
      refuse_state(tensor.name, "found " + described(view.dtype, view.shape) +
                                    ", expected " + described(dtype, shape));
  }
  for (const auto& [name, view] : found)
    if (std::ranges::find(tensors, name, &Parameter::name) == tensors.end())
      refuse_state(name, "the model of this job has no such tensor");

  at::NoGradGuard no_graph;
  for (const Parameter& tensor : tensors)
    at::Tensor(tensor.value).copy_(borrowed(*found[tensor.name]));
}

}  // namespace penstock
