#pragma once

#include <map>
#include <string>
#include <vector>

#include "penstock/session/safetensors.h"
#include "penstock/session/stepper.h"

namespace penstock {

/// What a checkpoint of ours has among its remarks, and no other file.
inline constexpr const char* kModelRemark = "penstock_model";

/// The weights in a safetensors file, by the module's own names, where `file`
/// has them: of a checkpoint of ours those that are averaged over time where
/// there are such, of any other file all that it holds.
std::map<std::string, TensorView> weights_in(const SafetensorsView& file);

/// Throws Error(request), code model.weights. `where`: the file or folder.
[[noreturn]] void refuse_weights(const std::string& where, std::string why,
                                 std::string next);

/// The weights of a model as a safetensors file, under the module's own names:
/// those that are averaged over time where there are such.
std::string weights_file(const ModelState& state);
/// The tensors of that file, which share the state's memory, and its remarks.
std::vector<NamedTensor> kept_weights(const ModelState& state);
Json weights_remarks();

/// A state whose weights are those of a safetensors file: one that
/// weights_file() made, a checkpoint, or any with the same names. Throws
/// Error(request) that names the first tensor that is missing, unknown, or of
/// another type or shape.
ModelState with_weights(ModelState state, const std::string& path);

}  // namespace penstock
