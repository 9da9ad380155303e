#include "penstock/monitor/series.h"

#include <algorithm>
#include <fstream>

#include "penstock/base/error.h"

namespace penstock {
namespace {

constexpr std::size_t kRecent = 64;
constexpr std::size_t kKept = 65'536;  // values of a number, for percentiles

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
  if (gpus == "none") return "GPUs are not monitored";
  return nvml_of_this_machine().init == nullptr
             ? "NVML (libnvidia-ml.so.1) was not found"
             : "NVML reports no GPU";
}

/// Where each number of the machine is from.
constexpr std::pair<const char*, const char*> kFileOf[] = {
    {"cpu_percent", "proc/stat"},
    {"memory_used_bytes", "proc/meminfo"},
    {"memory_percent", "proc/meminfo"},
    {"disk_read_bytes_s", "proc/diskstats"},
    {"disk_write_bytes_s", "proc/diskstats"},
    {"disk_busy_percent", "proc/diskstats"},
    {"network_received_bytes_s", "proc/net/dev"},
    {"network_sent_bytes_s", "proc/net/dev"},
    {"cpu_pressure_percent", "proc/pressure/cpu"},
    {"io_pressure_percent", "proc/pressure/io"},
    {"memory_pressure_percent", "proc/pressure/memory"}};
constexpr const char* kOfGpu[] = {"utilisation_percent",
                                  "memory_used_bytes",
                                  "memory_percent",
                                  "temperature_c",
                                  "power_w",
                                  "sm_clock_mhz",
                                  "pcie_sent_bytes_s",
                                  "pcie_received_bytes_s"};

std::string why_not_in(const std::filesystem::path& root,
                       const std::string& file) {
  std::error_code none;
  if (!std::filesystem::exists(root / file, none))
    return "there is no /" + file;
  if (!std::ifstream(root / file)) return "/" + file + " is not readable";
  return "/" + file + " does not report it";
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
                 .what = "cannot monitor the process",
                 .where = "process " + std::to_string(*options_.process),
                 .why = "there is no such process, or this user may not see it",
                 .next = "find its number with 'ps aux', or run this command "
                         "as the user of the process"});
  process_first_ = process_before_;
  for (pid_t child : processes_below(*options_.process, options_.root))
    if (auto counters = read_process(child, options_.root))
      below_before_.emplace(child, *std::move(counters));
}

MachineSeries::~MachineSeries() = default;

// Invariant: `values` holds every stride-th value from the first on. When it is
// full every other one is dropped and the stride doubles, so the values stay
// evenly spread over the whole time, in bounded memory.
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
  add_tree(sample, seconds, *now);
  process_before_ = std::move(now);
}

/// The process and all below it: what workers do is not in its own numbers.
void MachineSeries::add_tree(Json& sample, double seconds,
                             const ProcessCounters& now) {
  double cpu_s = std::max(0.0, now.cpu_s - process_before_->cpu_s);
  double resident = now.resident;  // pages that several share count in each
  auto read = grown(process_before_->read, now.read);
  auto written = grown(process_before_->written, now.written);
  std::map<pid_t, ProcessCounters> below;
  for (pid_t child : processes_below(*options_.process, options_.root)) {
    auto counters = read_process(child, options_.root);
    if (!counters) continue;
    // One that was not there the last time began with nothing.
    const ProcessCounters none{.read = 0, .written = 0};
    auto found = below_before_.find(child);
    const ProcessCounters& before =
        found == below_before_.end() ? none : found->second;
    cpu_s += std::max(0.0, counters->cpu_s - before.cpu_s);
    resident += counters->resident;
    if (auto more = grown(before.read, counters->read))
      read = read.value_or(0) + *more;
    if (auto more = grown(before.written, counters->written))
      written = written.value_or(0) + *more;
    below.emplace(child, *std::move(counters));
  }
  add(sample, "process.children", static_cast<double>(below.size()));
  add(sample, "process.tree_cpu_percent", 100 * cpu_s / seconds);
  add(sample, "process.tree_resident_bytes", resident);
  if (read) add(sample, "process.tree_read_bytes_s", *read / seconds);
  if (written) add(sample, "process.tree_write_bytes_s", *written / seconds);
  below_before_ = std::move(below);
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

std::map<std::string, std::string> MachineSeries::not_known() const {
  std::map<std::string, std::string> reasons;
  auto look = [&](const std::string& name, const auto& reason) {
    if (!metrics_.contains(name)) reasons.emplace(name, reason(name));
  };
  for (const auto& [name, path] : kFileOf)
    look(name, [&, file = path](const std::string&) {
      return why_not_in(options_.root, file);
    });
  look("cpu_throttled_percent", [](const std::string&) {
    return std::string("no cgroup CPU quota is set");
  });
  for (std::size_t i = 0; i < gpus_.size(); ++i)
    for (const char* name : kOfGpu)
      look("gpu" + std::to_string(i) + "." + name, [](const std::string&) {
        return std::string("its driver does not report it");
      });
  if (options_.process)
    for (const char* name :
         {"process.read_bytes_s", "process.tree_read_bytes_s",
          "process.tree_write_bytes_s"})
      look(name, [&](const std::string&) {
        return why_not_in(options_.root,
                          "proc/" + std::to_string(*options_.process) + "/io");
      });
  return reasons;
}

Json MachineSeries::summary(Json findings) const {
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
  json["not_known"] = Json::Object{};
  for (const auto& [name, reason] : not_known())
    json["not_known"][name] = reason;
  json["process"] = options_.process ? process_json() : Json();
  json["assessment"] = assessment(std::move(findings));
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
