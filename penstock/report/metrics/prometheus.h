#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "penstock/report/metrics/sink.h"

namespace penstock {

/// `metrics.prom`, the newest numbers in the text format of Prometheus (0.0.4),
/// for the textfile collector of its node_exporter, or any web server: replaced
/// as a whole each time. Gauges `penstock_NAME{run="..."}`, of the last epoch
/// `penstock_epoch_NAME`, and `penstock_steps`.
class PrometheusFile : public MetricSink {
 public:
  explicit PrometheusFile(const std::filesystem::path& folder);

  void add(std::int64_t step, double time, const Metrics& metrics) override;
  void add_epoch(std::int64_t step, double time,
                 const Metrics& metrics) override;

 private:
  void write();
  const std::filesystem::path file_;
  const std::string label_;
  std::map<std::string, double> newest_;  // by the whole name
};

}  // namespace penstock
