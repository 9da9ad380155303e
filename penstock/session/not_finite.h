#pragma once

#include <optional>
#include <string>

#include "penstock/base/base.h"
#include "penstock/session/stepper.h"

namespace penstock {

/// The code of the errors of a run whose numbers are infinite or not numbers.
inline constexpr const char* kNotFinite = "train.not_finite";

/// Error(transform) of a model that has learned something that is not a finite
/// number; `where` names the step and what holds the number.
Error not_finite_error(std::string where, std::string why, std::string next);

/// The name of the first tensor of a model that holds a value that is not a
/// number; nullopt where all are numbers. Infinities are numbers here: a model
/// may have a mask of them.
std::optional<std::string> tensor_without_number(const ModelState& model);

}  // namespace penstock
