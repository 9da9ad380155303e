#pragma once

#include <string>

#include "penstock/base/host_limits.h"
#include "penstock/dataset/table/table_options.h"

namespace penstock {

/// What is free for one rank, where it chooses what it takes (`cache` "auto"):
/// the ranks that are known to run on this machine share its memory. They start
/// at about the same time, and each would take what all of them see. A tier
/// that the job names may have all that is free.
HostLimits rank_limits(const std::string& cache, const RowsUse& use);

/// By how many ranks what is free is divided.
int ranks_sharing(const std::string& cache, const RowsUse& use);

/// Of a plan that is one of several ranks; else empty.
std::string rank_note(const RowsUse& use);

}  // namespace penstock
