#pragma once

#include "penstock/base/json.h"

namespace penstock {

/// Two reports side by side: {"first", "second", "gain", "metrics",
/// "settings", "stages", "advice"}. `metrics` are those of the last
/// validations. `gain` is of the rate of samples, 0.5 for half as fast again;
/// `settings` lists those that differ; `advice` is the first action of the
/// first run's verdict, whether the second run follows it, and beside the
/// predicted gain the one that was measured. What is not known is null.
Json compare_runs(const Json& first, const Json& second);

}  // namespace penstock
