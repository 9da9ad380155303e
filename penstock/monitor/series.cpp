#include "penstock/monitor/series.h"

#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/base/formatted.h"

namespace penstock {
namespace {

constexpr std::size_t kRecent = 64;
constexpr std::size_t kKept = 65'536;  // values of a number, for percentiles
constexpr double kIdleGpu = 30, kBusyGpu = 90;  // percent
constexpr double kBusyPart = 80;

std::optional<double> grown(const std::optional<double>& before,
                            const std::optional<double>& now) {
  if (!before || !now || *now < *before) return std::nullopt;
  return *now - *before;
}

double busiest_drive(const MachineCounters& before, const MachineCounters& now,
                     double seconds) {
  double busiest = 0;
  for (const auto& [drive, busy_s] : now.disk_busy_by_drive) {
    auto found = before.disk_busy_by_drive.find(drive);
    if (found != before.disk_busy_by_drive.end())
      busiest = std::max(busiest, (busy_s - found->second) / seconds);
  }
  return std::min(1.0, busiest);
}

Json why_no_gpu(const std::string& gpus) {
  if (gpus == "none") return "none is looked at";
  return nvml_of_this_machine().init == nullptr
             ? "no NVML (libnvidia-ml.so.1) is here"
             : "NVML tells of no GPU";
}

}  // namespace

MachineSeries::MachineSeries(Options options) : options_(std::move(options)) {
  if (options_.gpus != "none") {
    const NvmlCalls& calls = options_.gpus == "synthetic"
                                 ? synthetic_nvml()
                                 : nvml_of_this_machine();
    for (const std::string& bus : gpus_of(calls)) {
      auto sensor = std::make_unique<GpuSensor>(bus, calls);
      std::string name = sensor->name();
      gpus_.push_back({std::move(name), std::move(sensor)});
    }
  }
  before_ = read_machine(options_.root);
  if (!options_.process) return;
  process_before_ = read_process(*options_.process, options_.root);
  if (!process_before_)
    throw Error(ErrorKind::request,
                {.code = "monitor.process",
                 .what = "cannot look at a process",
                 .where = "process " + std::to_string(*options_.process),
                 .why = "there is none of that number that this user may see",
                 .next = "look for its number with 'ps aux', or run this as "
                         "its user"});
  process_first_ = process_before_;
}

MachineSeries::~MachineSeries() = default;

void MachineSeries::Metric::add(double value) {
  least = seen == 0 ? value : std::min(least, value);
  most = seen == 0 ? value : std::max(most, value);
  sum += value;
  if (seen++ % stride == 0) values.push_back(value);
  if (values.size() >= kKept) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < values.size(); i += 2)
      values[kept++] = values[i];
    values.resize(kept);
    stride *= 2;
  }
  recent.push_back(value);
  if (recent.size() > kRecent) recent.pop_front();
}

double MachineSeries::Metric::percentile(double share) const {
  std::vector<double> sorted = values;
  const auto at = static_cast<std::ptrdiff_t>(
      share * static_cast<double>(sorted.size() - 1) + 0.5);
  std::ranges::nth_element(sorted, sorted.begin() + at);
  return sorted[static_cast<std::size_t>(at)];
}

void MachineSeries::add(Json& sample, const std::string& name, double value) {
  sample[name] = value;
  metrics_[name].add(value);
}

Json MachineSeries::sample(
    const std::vector<std::pair<std::string, double>>& more) {
  const Nanoseconds now = wall_clock().now();
  const double passed = std::max(1e-6, seconds(now - last_));
  last_ = now;
  ++samples_;
  Json sample{Json::Object{}};
  sample["t_s"] = seconds(now - began_);
  MachineCounters counters = read_machine(options_.root);
  add_machine(sample, counters, passed);
  before_ = std::move(counters);
  if (options_.process) add_process(sample, passed);
  add_gpus(sample);
  for (const auto& [name, value] : more) add(sample, name, value);
  return sample;
}

void MachineSeries::add_machine(Json& sample, const MachineCounters& now,
                                double seconds) {
  auto busy = grown(before_.cpu_busy_s, now.cpu_busy_s);
  auto total = grown(before_.cpu_total_s, now.cpu_total_s);
  if (busy && total && *total > 0)
    add(sample, "cpu_percent", 100 * *busy / *total);
  if (now.memory_used && now.memory_total) {
    add(sample, "memory_used_bytes", *now.memory_used);
    add(sample, "memory_percent", 100 * *now.memory_used / *now.memory_total);
  }
  auto rate = [&](const char* name, const std::optional<double>& earlier,
                  const std::optional<double>& later) {
    if (auto more = grown(earlier, later)) add(sample, name, *more / seconds);
  };
  rate("disk_read_bytes_s", before_.disk_read, now.disk_read);
  rate("disk_write_bytes_s", before_.disk_written, now.disk_written);
  if (now.disk_busy_s)
    add(sample, "disk_busy_percent",
        100 * busiest_drive(before_, now, seconds));
  rate("network_received_bytes_s", before_.net_received, now.net_received);
  rate("network_sent_bytes_s", before_.net_sent, now.net_sent);
  if (auto throttled = grown(before_.throttled_s, now.throttled_s))
    add(sample, "cpu_throttled_percent", 100 * *throttled / seconds);
  auto share = [&](const char* name, const std::optional<double>& pressure) {
    if (pressure) add(sample, name, 100 * *pressure);
  };
  share("cpu_pressure_percent", now.cpu_pressure);
  share("io_pressure_percent", now.io_pressure);
  share("memory_pressure_percent", now.memory_pressure);
}

void MachineSeries::add_process(Json& sample, double seconds) {
  auto now = read_process(*options_.process, options_.root);
  if (!now) {
    lives_ = false;
    return;
  }
  const ProcessCounters& before = *process_before_;
  add(sample, "process.cpu_percent",
      100 * std::max(0.0, now->cpu_s - before.cpu_s) / seconds);
  add(sample, "process.resident_bytes", now->resident);
  add(sample, "process.threads", static_cast<double>(now->threads.size()));
  if (auto read = grown(before.read, now->read))
    add(sample, "process.read_bytes_s", *read / seconds);
  // Of what it reads, the part that comes from drives and not from memory.
  auto asked = grown(before.asked_for, now->asked_for);
  auto read = grown(before.read, now->read);
  if (asked && read && *asked > 0)
    add(sample, "process.reads_from_drives_percent",
        100 * std::min(1.0, *read / *asked));
  process_before_ = std::move(now);
}

void MachineSeries::add_gpus(Json& sample) {
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const std::string gpu = "gpu" + std::to_string(i) + ".";
    GpuUse use = gpus_[i].sensor->read();
    gpus_[i].sensor->read_pcie(use);
    auto known = [&](const char* name, const auto& value, double factor = 1) {
      if (value) add(sample, gpu + name, factor * static_cast<double>(*value));
    };
    known("utilisation_percent", use.utilisation, 100);
    known("memory_used_bytes", use.memory_used);
    if (use.memory_used && use.memory_total && *use.memory_total > 0)
      add(sample, gpu + "memory_percent",
          100 * static_cast<double>(*use.memory_used) /
              static_cast<double>(*use.memory_total));
    known("temperature_c", use.temperature_c);
    known("power_w", use.power_w);
    known("sm_clock_mhz", use.sm_clock_mhz);
    known("pcie_sent_bytes_s", use.pcie_sent);
    known("pcie_received_bytes_s", use.pcie_received);
    if (use.clock_reasons)
      for (const std::string& reason : *use.clock_reasons)
        ++clock_reasons_[reason];
  }
}

Json MachineSeries::process_json() const {
  Json json;
  json["pid"] = std::int64_t{*options_.process};
  json["name"] = process_before_->name;
  json["ended"] = !lives_;
  const double wall = std::max(1e-6, seconds(last_ - began_));
  std::vector<std::pair<double, Json>> threads;
  for (const auto& [number, thread] : process_before_->threads) {
    auto first = process_first_->threads.find(number);
    const double cpu_s =
        thread.cpu_s -
        (first == process_first_->threads.end() ? 0 : first->second.cpu_s);
    Json entry;
    entry["tid"] = std::int64_t{number};
    entry["name"] = thread.name;
    entry["cpu_percent"] = 100 * cpu_s / wall;
    threads.emplace_back(cpu_s, std::move(entry));
  }
  std::ranges::stable_sort(threads, std::greater<>(),
                           &std::pair<double, Json>::first);
  json["threads"] = Json::Array{};
  for (std::size_t i = 0; i < std::min<std::size_t>(20, threads.size()); ++i)
    json["threads"].push_back(std::move(threads[i].second));
  return json;
}

Json MachineSeries::summary() const {
  Json json;
  json["seconds"] = seconds(last_ - began_);
  json["samples"] = samples_;
  json["gpus"] = Json::Array{};
  for (const Gpu& gpu : gpus_) json["gpus"].push_back(gpu.name);
  json["no_gpu"] = gpus_.empty() ? why_no_gpu(options_.gpus) : Json();
  json["synthetic_gpu"] = options_.gpus == "synthetic";
  json["metrics"] = Json::Object{};
  for (const auto& [name, metric] : metrics_) {
    Json& of = json["metrics"][name];
    of["mean"] = metric.sum / static_cast<double>(metric.seen);
    of["min"] = metric.least;
    of["max"] = metric.most;
    of["p95"] = metric.percentile(0.95);
  }
  json["process"] = options_.process ? process_json() : Json();
  json["assessment"] = assessment();
  return json;
}

const std::deque<double>& MachineSeries::recent(
    const std::string& metric) const {
  static const std::deque<double> none;
  auto found = metrics_.find(metric);
  return found == metrics_.end() ? none : found->second.recent;
}

std::optional<double> MachineSeries::mean(const std::string& metric) const {
  auto found = metrics_.find(metric);
  if (found == metrics_.end()) return std::nullopt;
  return found->second.sum / static_cast<double>(found->second.seen);
}

Json MachineSeries::assessment() const {
  Json findings{Json::Array{}};
  auto find = [&](std::string finding, std::string because) {
    Json entry;
    entry["finding"] = std::move(finding);
    entry["because"] = std::move(because);
    findings.push_back(std::move(entry));
  };
  const auto cpu = mean("cpu_percent"), disk = mean("disk_busy_percent");
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const std::string gpu = "gpu" + std::to_string(i);
    const auto use = mean(gpu + ".utilisation_percent");
    const auto memory = mean(gpu + ".memory_percent");
    if (use && *use >= kBusyGpu)
      find(gpu + " is busy",
           formatted("some kernel ran %.0f %% of the time; that is a share of "
                     "time, and says nothing of how much of the GPU it used",
                     *use));
    if (use && *use < kIdleGpu) {
      const char* why =
          "neither processors nor drives are busy: look for waiting, for "
          "answers or locks";
      if (cpu && *cpu > kBusyPart)
        why = "the processors are busy: the work before the GPU limits";
      else if (disk && *disk > kBusyPart)
        why = "a drive is busy: reading limits";
      find(gpu + " is mostly idle",
           formatted("some kernel ran %.0f %% of the time (processors %.0f %%, "
                     "drives %.0f %%)",
                     *use, cpu.value_or(0), disk.value_or(0)) +
               "; " + why);
    }
    if (memory && *memory > 95)
      find(gpu + "'s memory is nearly full",
           formatted("%.0f %% of it are used", *memory));
  }
  for (const auto& [reason, count] : clock_reasons_) {
    const double share =
        static_cast<double>(count) / static_cast<double>(samples_);
    if (reason != "idle" && share > 0.2)
      find("clocks are held down: " + reason,
           formatted("in %.0f %% of the samples", 100 * share));
  }
  if (auto throttled = mean("cpu_throttled_percent");
      throttled && *throttled > 5)
    find("the container's CPU quota holds the process back",
         formatted("for %.2g s of every second, on all processors together",
                   *throttled / 100));
  if (auto used = mean("memory_percent"); used && *used > 90)
    find("memory is nearly full", formatted("%.0f %% of it are used", *used));
  if (auto waits = mean("memory_pressure_percent"); waits && *waits > 5)
    find("programs wait for memory",
         formatted("some did for %.0f %% of the time", *waits));
  if (findings.array().empty())
    find("nothing stands out", formatted("processors %.0f %%, drives %.0f %%",
                                         cpu.value_or(0), disk.value_or(0)));
  return findings;
}

Json compare_summaries(const Json& before, const Json& after) {
  Json result{Json::Object{}};
  const Json* earlier = before.find("metrics");
  const Json* later = after.find("metrics");
  if (earlier == nullptr || later == nullptr) return result;
  for (const auto& [name, metric] : later->object()) {
    const Json* other = earlier->find(name);
    if (other == nullptr) continue;
    const double was = other->find("mean")->number();
    const double is = metric.find("mean")->number();
    Json& entry = result[name];
    entry["before"] = was;
    entry["after"] = is;
    entry["change"] = is - was;
  }
  return result;
}

}  // namespace penstock
