#include "penstock/monitor/host.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

namespace penstock {
namespace {

using Path = std::filesystem::path;

std::optional<std::string> first_line(const Path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

/// The value of "KEY value" or "KEY: value" in a file of such lines.
std::optional<std::int64_t> value_of(const Path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::size_t at = line.find_first_of("0123456789-", key.size());
    if (at != std::string::npos) return std::atoll(line.c_str() + at);
  }
  return std::nullopt;
}

std::optional<std::int64_t> number_in(const Path& path) {
  std::optional<std::string> line = first_line(path);
  if (!line || line->empty() ||
      (line->front() != '-' &&
       !std::isdigit(static_cast<unsigned char>(line->front()))))
    return std::nullopt;
  return std::atoll(line->c_str());
}

/// A controller's folders of this process, from its own up to the root. Hosts
/// may mix v1 controllers with an (empty) v2 tree, so each is looked up alone.
struct Controller {
  std::vector<Path> folders;
  bool v2 = false;
};

Controller find_controller(const Path& root, std::string_view name) {
  std::string own_v1, own_v2;
  std::ifstream groups(root / "proc/self/cgroup");
  bool v1 = false;
  for (std::string line; std::getline(groups, line);) {
    std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (names == ",,") own_v2 = path;
    if (names.find("," + std::string(name) + ",") != std::string::npos) {
      own_v1 = path;
      v1 = true;
    }
  }
  std::string mount, mounted_root;
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream head(line.substr(0, dash)), tail(line.substr(dash + 3));
    std::string id, parent, device, from, at, type, source, options;
    head >> id >> parent >> device >> from >> at;
    tail >> type >> source >> options;
    bool matches =
        v1 ? type == "cgroup" &&
                 ("," + options + ",").find("," + std::string(name) + ",") !=
                     std::string::npos
           : type == "cgroup2";
    if (!matches) continue;
    mount = at;
    mounted_root = from;
    break;
  }
  Controller controller;
  controller.v2 = !v1;
  if (mount.empty()) return controller;
  std::string own = v1 ? own_v1 : own_v2;
  if (mounted_root != "/" && own.starts_with(mounted_root))
    own = own.substr(mounted_root.size());
  Path base = root / Path(mount).relative_path();
  Path folder = base / Path(own).relative_path();
  if (!std::filesystem::exists(folder)) folder = base;
  for (;; folder = folder.parent_path()) {
    controller.folders.push_back(folder);
    if (folder == base || folder == folder.parent_path()) break;
  }
  return controller;
}

void apply_cpu_quota(const Path& root, HostLimits& limits) {
  Controller cpu = find_controller(root, "cpu");
  for (const Path& folder : cpu.folders) {
    double quota = -1, period = 0;
    if (cpu.v2) {
      std::optional<std::string> line = first_line(folder / "cpu.max");
      if (!line || line->starts_with("max")) continue;
      std::istringstream(*line) >> quota >> period;
    } else {
      quota = static_cast<double>(
          number_in(folder / "cpu.cfs_quota_us").value_or(-1));
      period = static_cast<double>(
          number_in(folder / "cpu.cfs_period_us").value_or(0));
    }
    if (quota <= 0 || period <= 0 || quota / period >= limits.cpus) continue;
    limits.cpus = quota / period;
    limits.cpus_origin = "cgroup " + folder.string();
  }
}

void apply_memory_limit(const Path& root, HostLimits& limits) {
  Controller memory = find_controller(root, "memory");
  for (const Path& folder : memory.folders) {
    std::optional<std::int64_t> limit = number_in(
        folder / (memory.v2 ? "memory.max" : "memory.limit_in_bytes"));
    std::optional<std::int64_t> used = number_in(
        folder / (memory.v2 ? "memory.current" : "memory.usage_in_bytes"));
    if (!limit || *limit <= 0) continue;
    auto bytes = static_cast<std::size_t>(*limit);
    if (bytes >= limits.memory) continue;  // v1 writes 2^63 for "none"
    limits.memory = bytes;
    // Pages of files count as used but are given back under pressure.
    std::int64_t cached =
        value_of(folder / "memory.stat",
                 memory.v2 ? "inactive_file" : "total_inactive_file")
            .value_or(0);
    std::int64_t left =
        *limit - std::max<std::int64_t>(0, used.value_or(0) - cached);
    limits.memory_free =
        std::min(limits.memory_free,
                 static_cast<std::size_t>(std::max<std::int64_t>(0, left)));
    limits.memory_origin = "cgroup " + folder.string();
  }
}

}  // namespace

HostLimits read_host_limits(const Path& root) {
  HostLimits limits;
  cpu_set_t set;
  CPU_ZERO(&set);
  limits.cpus = ::sched_getaffinity(0, sizeof(set), &set) == 0
                    ? CPU_COUNT(&set)
                    : static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  limits.cpus_origin = "affinity";
  apply_cpu_quota(root, limits);
  Path info = root / "proc/meminfo";
  limits.memory =
      static_cast<std::size_t>(value_of(info, "MemTotal:").value_or(0)) * 1024;
  limits.memory_free =
      static_cast<std::size_t>(value_of(info, "MemAvailable:").value_or(0)) *
      1024;
  limits.memory_origin = "MemAvailable";
  apply_memory_limit(root, limits);
  return limits;
}

HostUse read_host_use(const Path& root) {
  HostUse use;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    use.cpu_seconds =
        static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
        1e-6 * static_cast<double>(usage.ru_utime.tv_usec +
                                   usage.ru_stime.tv_usec);
  Path status = root / "proc/self/status";
  if (auto kib = value_of(status, "VmRSS:"))
    use.resident_bytes = static_cast<std::size_t>(*kib) * 1024;
  if (auto kib = value_of(status, "VmHWM:"))
    use.peak_bytes = static_cast<std::size_t>(*kib) * 1024;
  Controller cpu = find_controller(root, "cpu");
  if (!cpu.folders.empty()) {
    Path stat = cpu.folders.front() / "cpu.stat";
    if (cpu.v2)
      use.throttled_us = value_of(stat, "throttled_usec");
    else if (auto ns = value_of(stat, "throttled_time"))
      use.throttled_us = *ns / 1000;
  }
  use.read_bytes = value_of(root / "proc/self/io", "read_bytes:");
  return use;
}

Json machine_json() {
  HostLimits limits = read_host_limits();
  Json json;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) {
      json["processor"] = line.substr(line.find(':') + 2);
      break;
    }
  json["cpus"] = limits.cpus;
  json["cpus_from"] = limits.cpus_origin;
  json["memory_bytes"] = limits.memory;
  json["memory_free_bytes"] = limits.memory_free;
  json["memory_from"] = limits.memory_origin;
  utsname system{};
  if (::uname(&system) == 0) json["kernel"] = system.release;
  return json;
}

}  // namespace penstock
