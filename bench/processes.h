#pragma once

#include <functional>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// Calls `act` in so many processes at once, forked from this one, and gives
/// what each returned. Ends with an internal error where one does not end well.
std::vector<Json> in_processes(int count, const std::function<Json(int)>& act);

/// Of this process, what was resident at most.
double peak_mib();

}  // namespace penstock
