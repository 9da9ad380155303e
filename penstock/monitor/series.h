#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/monitor/machine.h"

namespace penstock {

/// What a machine, and if asked a process, does over time: samples in their
/// turn, then mean, least, most and 95th percentile of each number and what
/// they mean. One thread.
///
///     MachineSeries series({});
///     for (int second = 0; second < 10; ++second) {
///       wall_clock().sleep_until(wall_clock().now() + from_seconds(1));
///       series.sample();
///     }
///     std::puts(series.summary().dump(2).c_str());
class MachineSeries {
 public:
  struct Options {
    std::optional<pid_t> process;  ///< looked at, too, with its threads
    std::string gpus = "auto";     ///< "auto", "synthetic" or "none"
    std::filesystem::path root = "/";
  };
  /// Throws Error(request) where there is no such process.
  explicit MachineSeries(Options options);
  ~MachineSeries();
  MachineSeries(const MachineSeries&) = delete;
  MachineSeries& operator=(const MachineSeries&) = delete;

  /// The numbers of the time since the last sample, or since the series began:
  /// {"cpu_percent": 12.5, "gpu0.utilisation_percent": 97, ...}. What is not
  /// known is missing. `more`: numbers of the caller's, which are summed up
  /// with the others.
  Json sample(const std::vector<std::pair<std::string, double>>& more = {});
  /// {"seconds", "samples", "gpus", "metrics": {NAME: {"mean", "min", "max",
  /// "p95"}}, "not_known": {NAME: reason}, "process", "assessment":
  /// [{"finding", "because"}]}. `findings`: those of the caller's, in the same
  /// form, which come first.
  Json summary(Json findings = Json::Array{}) const;
  /// The numbers that no sample has had so far, with the reason:
  /// {"cpu_percent": "there is no /proc/stat"}.
  std::map<std::string, std::string> not_known() const;
  /// The newest values of a number, at most 64; empty if none exist.
  const std::deque<double>& recent(const std::string& metric) const;
  /// False once the process has ended.
  bool process_lives() const { return lives_; }

 private:
  struct Gpu {
    std::string name;
    std::unique_ptr<GpuSensor> sensor;
  };
  struct Metric {
    std::vector<double> values;  // every stride-th of all
    std::int64_t seen = 0, stride = 1;
    double sum = 0, least = 0, most = 0;
    std::deque<double> recent;
    void add(double value);
    double percentile(double share) const;
  };

  void add(Json& sample, const std::string& name, double value);
  void add_machine(Json& sample, const MachineCounters& now, double seconds);
  void add_process(Json& sample, double seconds);
  void add_tree(Json& sample, double seconds, const ProcessCounters& now);
  void add_gpus(Json& sample);
  Json process_json() const;
  std::optional<double> mean(const std::string& metric) const;
  // Of series_assessment.cpp.
  class Findings;
  Json assessment(Json findings) const;
  void find_in_gpus(Findings& to) const;
  void find_in_machine(Findings& to) const;
  void find_in_process(Findings& to) const;

  const Options options_;
  const Nanoseconds began_ = wall_clock().now();
  Nanoseconds last_ = began_;
  std::int64_t samples_ = 0;
  MachineCounters before_;
  std::optional<ProcessCounters> process_before_, process_first_;
  std::map<pid_t, ProcessCounters> below_before_;  // its children, and theirs
  bool lives_ = true;
  std::vector<Gpu> gpus_;
  std::map<std::string, Metric> metrics_;
  std::map<std::string, std::int64_t> clock_reasons_;
};

/// Two summaries side by side: {NAME: {"before", "after", "change"}} of the
/// means of all numbers that both have.
Json compare_summaries(const Json& before, const Json& after);

}  // namespace penstock
