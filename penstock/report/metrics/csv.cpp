#include "penstock/report/metrics/csv.h"

#include <algorithm>
#include <cmath>

#include "penstock/base/base.h"

namespace penstock {

void CsvMetrics::add(std::int64_t step, double time, const Metrics& metrics) {
  add_line("metrics.csv", columns_, step, time, metrics);
}

void CsvMetrics::add_epoch(std::int64_t step, double time,
                           const Metrics& metrics) {
  add_line("epochs.csv", epoch_columns_, step, time, metrics);
}

void CsvMetrics::add_line(const char* file, std::vector<std::string>& columns,
                          std::int64_t step, double time,
                          const Metrics& metrics) {
  const std::filesystem::path path = folder_ / file;
  if (columns.empty()) {
    std::string header = "time,step";
    for (const auto& [name, value] : metrics) {
      columns.push_back(name);
      header += "," + name;
    }
    real_files().append_line(path, header);
  }
  std::string line = Json(time).dump() + "," + std::to_string(step);
  for (const std::string& column : columns) {
    const auto found = std::ranges::find(
        metrics, column, [](const auto& metric) { return metric.first; });
    line += ',';
    if (found != metrics.end() && std::isfinite(found->second))
      line += Json(found->second).dump();
  }
  real_files().append_line(path, line);
}

}  // namespace penstock
