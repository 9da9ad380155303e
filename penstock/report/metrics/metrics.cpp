#include "penstock/report/metrics/metrics.h"

#include <chrono>
#include <limits>

#include "penstock/report/metrics/csv.h"
#include "penstock/report/metrics/prometheus.h"
#include "penstock/report/metrics/tensorboard.h"

namespace penstock {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

double seconds_since_1970() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

MetricSinks::MetricSinks(const OutputSection& output,
                         const std::filesystem::path& folder) {
  auto begin = [&](bool wanted, auto make) {
    if (!wanted) return;
    try {
      sinks_.push_back(make());
    } catch (const Error& error) {
      log(LogLevel::warning, error.what());
    }
  };
  begin(output.tensorboard,
        [&] { return std::make_unique<TensorBoardFile>(folder); });
  begin(output.csv, [&] { return std::make_unique<CsvMetrics>(folder); });
  begin(output.prometheus,
        [&] { return std::make_unique<PrometheusFile>(folder); });
}

template <class Call>
void MetricSinks::each(Call call) {
  std::erase_if(sinks_, [&](const std::unique_ptr<MetricSink>& sink) {
    try {
      call(*sink);
      return false;
    } catch (const Error& error) {
      log(LogLevel::warning,
          std::string("the run continues without this file: ") + error.what());
      return true;
    }
  });
}

void MetricSinks::add(std::int64_t step, const TimelineNumbers::Point& point,
                      bool takes_time) {
  if (!any()) return;
  const Metrics metrics = metrics_of(point, takes_time);
  each(
      [&](MetricSink& sink) { sink.add(step, seconds_since_1970(), metrics); });
}

void MetricSinks::add_epoch(std::int64_t step, const Json& epoch) {
  if (!any()) return;
  const Metrics metrics = metrics_of(epoch);
  each([&](MetricSink& sink) {
    sink.add_epoch(step, seconds_since_1970(), metrics);
  });
}

Metrics metrics_of(const TimelineNumbers::Point& point, bool takes_time) {
  const Json columns = TimelineNumbers{.points = {point}, .epochs = {}}.json();
  auto measured = [&](const char* name) {
    const Json* column = columns.find(name);
    return column != nullptr && column->array()[0].is_number()
               ? column->array()[0].number()
               : kUnknown;
  };
  StepParts parts = point.parts;
  if (!takes_time) parts.host += std::exchange(parts.compute, Nanoseconds(0));
  const double wall = seconds(parts.wall);
  auto share = [&](Nanoseconds part) {
    return wall > 0 ? seconds(part) / wall : kUnknown;
  };
  Metrics metrics = {
      {"epoch", static_cast<double>(point.epoch)},
      {"loss", measured("loss")},
      {"samples_per_s",
       wall > 0 ? static_cast<double>(parts.samples) / wall : kUnknown},
      {"au", parts.steps_take_time() ? parts.utilisation() : kUnknown},
      {"wait_data", share(parts.wait_data)},
      {"wait_copy", share(parts.wait_copy)},
      {"host", share(parts.host)},
      {"sync", share(parts.sync)}};
  for (const char* name : {"cpus", "resident_bytes", "device_bytes",
                           "gpu_utilisation", "temperature_c", "power_w"})
    metrics.emplace_back(name, measured(name));
  return metrics;
}

Metrics metrics_of(const Json& epoch) {
  Metrics metrics;
  for (const auto& [name, value] : epoch.object()) {
    if (name == "use") {
      for (const auto& [used, numbers] : value.object())
        for (const auto& [which, number] : numbers.object())
          metrics.emplace_back(used + "_" + which, number.number());
    } else if (value.is_number() || value.is_null()) {
      metrics.emplace_back(name, value.is_null() ? kUnknown : value.number());
    }
  }
  return metrics;
}

}  // namespace penstock
