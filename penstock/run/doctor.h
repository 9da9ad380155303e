#pragma once

#include "penstock/base/json.h"

namespace penstock {

/// What this machine and this build can do: limits with their origins, and
/// for each optional part whether it is there and, if not, what to do. A GPU
/// that is there comes with what its driver tells of it.
Json doctor();

}  // namespace penstock
