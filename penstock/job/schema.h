#pragma once

#include <string>

namespace penstock {

/// The JSON Schema (draft 2020-12) of the job file.
std::string job_schema();

}  // namespace penstock
