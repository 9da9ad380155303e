#pragma once

#include <string>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// What one of a job's folds came to, out of its own report: {"fold", "run",
/// "steps", "best", "val": {metric: number}}. The metrics are those of the
/// validation whose weights were kept.
Json outcome_of_fold(const Json& report, std::int64_t fold);

/// Writes `folds`, and over all of them `mean` and `spread` by metric, into a
/// report. The spread is the standard deviation of a sample (n - 1), null where
/// there is one number only. A metric that a fold lacks has neither.
void add_folds(const std::vector<Json>& outcomes, Json& report);

/// Whether a report is that of a job with folds.
bool has_folds(const Json& report);

/// For people: a row for each fold, then mean and spread.
std::string folds_text(const Json& report);
/// The same as a page.
std::string folds_html(const Json& report);

}  // namespace penstock
