#include "penstock/base/formatted.h"
#include "penstock/base/host_limits.h"
#include "penstock/monitor/series.h"

namespace penstock {
namespace {

// Percent.
constexpr double kIdleGpu = 30, kBusyGpu = 90, kBusyPart = 80;
constexpr double kWaiting = 20;  // of the time, somebody
constexpr double kWaitingForMemory = 5;

std::string percent(const std::optional<double>& share) {
  return share ? formatted("%.0f %%", *share) : "n/a";
}

bool is_above(const std::optional<double>& share, double limit) {
  return share && *share > limit;
}

}  // namespace

class MachineSeries::Findings {
 public:
  explicit Findings(Json begin) : json_(std::move(begin)) {}
  void add(std::string finding, std::string because) {
    Json entry;
    entry["finding"] = std::move(finding);
    entry["because"] = std::move(because);
    json_.push_back(std::move(entry));
  }
  bool empty() const { return json_.array().empty(); }
  Json take() { return std::move(json_); }

 private:
  Json json_;
};

void MachineSeries::find_in_gpus(Findings& to) const {
  const auto cpu = mean("cpu_percent"), disk = mean("disk_busy_percent");
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const std::string gpu = "gpu" + std::to_string(i);
    const auto use = mean(gpu + ".utilisation_percent");
    const auto memory = mean(gpu + ".memory_percent");
    if (use && *use >= kBusyGpu)
      to.add(gpu + " is busy",
             formatted("kernels ran for %.0f %% of the time; this is a share "
                       "of time, not of the GPU's capacity",
                       *use));
    if (use && *use < kIdleGpu) {
      const char* why = cpu && disk
                            ? "neither processors nor drives are busy: look "
                              "for waiting on a network or on locks"
                            : "the bottleneck may be one of the unknown values";
      if (is_above(cpu, kBusyPart))
        why = "the processors are busy: work before the GPU is the bottleneck";
      else if (is_above(disk, kBusyPart))
        why = "a drive is busy: reading is the bottleneck";
      to.add(gpu + " is mostly idle",
             formatted("kernels ran for %.0f %% of the time (processors %s, "
                       "drives %s); %s",
                       *use, percent(cpu).c_str(), percent(disk).c_str(), why));
    }
    if (is_above(memory, 95))
      to.add(gpu + "'s memory is nearly full",
             formatted("%.0f %% of it is used", *memory));
  }
  for (const auto& [reason, count] : clock_reasons_) {
    const double share =
        static_cast<double>(count) / static_cast<double>(samples_);
    if (reason != "idle" && share > 0.2)
      to.add("clocks are reduced: " + reason,
             formatted("in %.0f %% of the samples", 100 * share));
  }
}

void MachineSeries::find_in_machine(Findings& to) const {
  if (auto busy = mean("cpu_percent"); is_above(busy, kBusyPart))
    to.add("the processors are busy",
           formatted("%.0f %% of their time", *busy));
  if (auto waits = mean("cpu_pressure_percent"); is_above(waits, kWaiting))
    to.add("programs wait for a processor",
           formatted("some waited for %.0f %% of the time", *waits));
  if (auto throttled = mean("cpu_throttled_percent"); is_above(throttled, 5))
    to.add(
        "the container's CPU quota limits the process",
        formatted(
            "it was stopped for %.2g s of every second, summed over processors",
            *throttled / 100));
  if (auto busy = mean("disk_busy_percent"); is_above(busy, kBusyPart))
    to.add("a drive is busy", formatted("%.0f %% of the time", *busy));
  if (auto waits = mean("io_pressure_percent"); is_above(waits, kWaiting))
    to.add("programs wait for drives",
           formatted("some waited for %.0f %% of the time", *waits));
  if (auto used = mean("memory_percent"); is_above(used, 90))
    to.add("memory is nearly full", formatted("%.0f %% of it is used", *used));
  if (auto waits = mean("memory_pressure_percent");
      is_above(waits, kWaitingForMemory))
    to.add("programs wait for memory",
           formatted("some waited for %.0f %% of the time", *waits));
}

/// In a container the processors of the host may be idle while those that the
/// process may use are not.
void MachineSeries::find_in_process(Findings& to) const {
  const auto used = mean("process.tree_cpu_percent");
  const double cpus = read_host_limits(options_.root).cpus;
  if (is_above(used, kBusyPart * cpus))
    to.add("the process uses all processors that it may use",
           formatted("%.1f of %.3g, including %.0f child processes",
                     *used / 100, cpus, mean("process.children").value_or(0)));
}

Json MachineSeries::assessment(Json begin) const {
  Findings findings(std::move(begin));
  find_in_gpus(findings);
  find_in_machine(findings);
  find_in_process(findings);
  if (!findings.empty()) return findings.take();
  const auto cpu = mean("cpu_percent"), disk = mean("disk_busy_percent");
  findings.add(cpu || disk ? "nothing stands out" : "too few values are known",
               formatted("processors %s, drives %s", percent(cpu).c_str(),
                         percent(disk).c_str()));
  return findings.take();
}

}  // namespace penstock
