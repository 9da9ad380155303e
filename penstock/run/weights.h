#pragma once

#include <string>

#include "penstock/run/stepper.h"

namespace penstock {

/// The weights of a model as a safetensors file, under the module's own names:
/// those that are averaged over time where there are such.
std::string weights_file(const ModelState& state);

/// A state whose weights are those of a safetensors file: one that
/// weights_file() made, a checkpoint, or any with the same names. Throws
/// Error(request) that names the first tensor that is missing, unknown, or of
/// another type or shape.
ModelState with_weights(ModelState state, const std::string& path);

}  // namespace penstock
