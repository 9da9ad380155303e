#pragma once

#include "penstock/base/json.h"
#include "penstock/session/session.h"

namespace penstock {

/// What the last validation saw, with names of classes and keys of rows in
/// place of their numbers: "baseline", "confusion", "by_class", "residuals" and
/// "worst_rows" of report.json, those that the model tells; and the "texts"
/// that it wrote at each of the last validations.
/// `details`: as Validated has them. A key that cannot be read is the
/// sample's number.
void add_outcomes(const Json& details, const Job& job, const Dataset& rows,
                  Json& report);

/// The learning rate over the steps of the run: {"peak", "points": [[step,
/// rate], ...]}, of at most 200 steps. Null without a model.
Json learning_rate_json(const Job& job, std::int64_t steps);

}  // namespace penstock
