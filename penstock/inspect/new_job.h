#pragma once

#include <string>

#include "penstock/sources/sources.h"

namespace penstock {

/// The text of a job file, with comments, that trains a `tabular` model of one
/// column of a table from the others. All rows are read once: what they hold
/// decides, by rules that the comments state. Of pictures an `image_classifier`
/// of their class, of which none is read.
///
/// `name` is what the file will be called. Throws Error(request) for a target
/// that is not there or that cannot be learned: init.target, init.no_inputs;
/// what the source throws; and the error of an interrupted read when `stop` is
/// set.
std::string new_job_text(const SourceSpec& spec, const std::string& target,
                         const std::string& name, StopFlag stop = {});

}  // namespace penstock
