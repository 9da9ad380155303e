#pragma once

#include <string>

#include "penstock/inspect/job_text.h"

namespace penstock {

/// Whether rows of the source hold arrays of a known shape.
bool holds_arrays(const SourceSpec& spec);

/// The job that predicts a column of single values from arrays; see
/// new_job_text(). The arrays are not read.
std::string array_job_text(const NewJob& job, StopFlag stop);

}  // namespace penstock
