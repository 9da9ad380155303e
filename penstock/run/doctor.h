#pragma once

#include "penstock/base/json.h"

namespace penstock {

/// What this machine and this build can do: limits with their origins, and
/// for each optional part whether it is there and, if not, what to do.
Json doctor();

}  // namespace penstock
