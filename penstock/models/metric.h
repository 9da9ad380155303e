#pragma once

#include <string_view>
#include <vector>

namespace penstock {

/// A number that models are compared by.
struct Metric {
  std::string_view name;  ///< as in reports, without "val_"
  bool higher_is_better = false;
};

/// Every metric that can decide which weights are the best.
const std::vector<Metric>& all_metrics();

/// The metric of that name; null where it is unknown.
const Metric* find_metric(std::string_view name);

}  // namespace penstock
