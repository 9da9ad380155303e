#include "penstock/models/metric.h"

#include <algorithm>

namespace penstock {

const std::vector<Metric>& all_metrics() {
  static const std::vector<Metric> all = {
      {"loss"},
      {"perplexity"},
      {"rmse"},
      {"mae"},
      {"median_km"},
      {"mean_km"},
      {"accuracy", true},
      {"top5_accuracy", true},
      {"balanced_accuracy", true},
      {"least_recall", true},
      {"auc", true},
      {"macro_f1", true},
      {"micro_f1", true},
      {"exact_match", true},
      {"map", true},
      {"r2", true},
  };
  return all;
}

const Metric* find_metric(std::string_view name) {
  const auto& all = all_metrics();
  const auto found = std::ranges::find(all, name, &Metric::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace penstock
