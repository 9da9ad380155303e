#pragma once

#include <filesystem>

#include "penstock/base/json.h"
#include "penstock/job/job.h"

namespace penstock {

/// Copies the files that a job names, and that its rows and model cannot do
/// without, into a folder: [{"setting", "file", "sha256"}] for `run.json`.
Json carry_files(const Job& job, const std::filesystem::path& folder);

/// Puts the files that carry_files() copied into a run's folder in the places
/// of those that its job names. A module of the user's own stays where it was,
/// since it may import what lies beside it, and its copy stands in where it is
/// gone. Throws Error(request), code predict.module_changed, where the module
/// has changed since the run.
void use_carried_files(const Json& carried, const std::filesystem::path& folder,
                       Json& job);

}  // namespace penstock
