#pragma once

#include <filesystem>
#include <vector>

#include "penstock/report/metrics/sink.h"

namespace penstock {

/// `metrics.csv`, a line about each second, and `epochs.csv`, one for each
/// epoch (RFC 4180). Their columns are those of the first line; what is not
/// known is empty.
class CsvMetrics : public MetricSink {
 public:
  explicit CsvMetrics(std::filesystem::path folder)
      : folder_(std::move(folder)) {}

  void add(std::int64_t step, double time, const Metrics& metrics) override;
  void add_epoch(std::int64_t step, double time,
                 const Metrics& metrics) override;

 private:
  void add_line(const char* file, std::vector<std::string>& columns,
                std::int64_t step, double time, const Metrics& metrics);
  const std::filesystem::path folder_;
  std::vector<std::string> columns_, epoch_columns_;
};

}  // namespace penstock
