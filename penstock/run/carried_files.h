#pragma once

#include <filesystem>

#include "penstock/base/json.h"

namespace penstock {

/// Puts the files that carry_files() copied into a run's folder in the places
/// of those that its job names. A module of the user's own stays where it was,
/// since it may import what lies beside it, and its copy stands in where it is
/// gone. Throws Error(request), code predict.module_changed, where the module
/// has changed since the run.
void use_carried_files(const Json& carried, const std::filesystem::path& folder,
                       Json& job);

}  // namespace penstock
