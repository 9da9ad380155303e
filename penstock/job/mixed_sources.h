#pragma once

#include <vector>

#include "penstock/base/setting_schema.h"
#include "penstock/base/spec.h"
#include "penstock/job/job.h"

namespace penstock {

/// Reads "sources", the sources that are mixed, into a job whose own fields,
/// where it has some, and split are there. Throws Error(request).
void parse_mixed_sources(Spec& document, Job& job);

/// The schema of that section.
Json mixed_sources_schema();

}  // namespace penstock
