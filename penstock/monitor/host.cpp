#include "penstock/monitor/host.h"

#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <type_traits>

#include "penstock/base/folder.h"
#include "penstock/base/kernel_files.h"
#include "penstock/base/processor_queue.h"

namespace penstock {

std::optional<double> cpu_seconds_used() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec +
                                    usage.ru_stime.tv_usec);
}

HostUse read_host_use(const std::filesystem::path& root) {
  HostUse use;
  use.cpu_seconds = cpu_seconds_used();
  const std::string status = kernel_text(root / "proc/self/status");
  if (auto kib = number_of_line(status, "VmRSS:"))
    use.resident_bytes = static_cast<std::size_t>(*kib) * 1024;
  if (auto kib = number_of_line(status, "VmHWM:"))
    use.peak_bytes = static_cast<std::size_t>(*kib) * 1024;
  CgroupFolders cpu = cgroup_folders("cpu", root);
  if (!cpu.folders.empty()) {
    std::filesystem::path stat = cpu.folders.front() / "cpu.stat";
    if (cpu.version_2)
      use.throttled_us = number_in(stat, "throttled_usec");
    else if (auto ns = number_in(stat, "throttled_time"))
      use.throttled_us = *ns / 1000;
  }
  use.read_bytes = number_in(root / "proc/self/io", "read_bytes:");
  return use;
}

std::optional<double> processor_queue_seconds(
    const std::filesystem::path& root) {
  std::error_code unknown;
  std::optional<double> all;
  for (const FolderEntry& thread : entries_of(root / "proc/self/task", unknown))
    if (const auto queued = queued_in(kernel_text(thread.path / "schedstat")))
      all = all.value_or(0) + seconds(*queued);
  return all;
}

HostUse use_between(const HostUse& earlier, const HostUse& later) {
  auto since = [](const auto& before, const auto& now) {
    using Number = std::remove_cvref_t<decltype(now)>;
    if (!before || !now) return Number();
    return Number(std::max(*now - *before, {}));  // of threads that have ended
  };
  HostUse use = later;
  use.cpu_seconds = since(earlier.cpu_seconds, later.cpu_seconds);
  use.throttled_us = since(earlier.throttled_us, later.throttled_us);
  use.read_bytes = since(earlier.read_bytes, later.read_bytes);
  use.queued_seconds = since(earlier.queued_seconds, later.queued_seconds);
  return use;
}

std::optional<MemoryShare> read_memory_share(
    const std::filesystem::path& root) {
  // Not smaps_rollup, for which the kernel walks all pages of the process: of a
  // program that has loaded torch that takes longer than its first batch.
  const std::string sums = kernel_text(root / "proc/self/status");
  auto anonymous = number_of_line(sums, "RssAnon:");
  auto files = number_of_line(sums, "RssFile:");
  auto shared = number_of_line(sums, "RssShmem:");
  if (!anonymous || !files || !shared) return std::nullopt;
  return MemoryShare{
      .anonymous = static_cast<std::size_t>(*anonymous + *shared) * 1024,
      .files = static_cast<std::size_t>(*files) * 1024};
}

std::optional<double> cpus_used(const HostUse& earlier, const HostUse& later,
                                Nanoseconds between) {
  if (!earlier.cpu_seconds || !later.cpu_seconds || between.count() <= 0)
    return std::nullopt;
  return (*later.cpu_seconds - *earlier.cpu_seconds) / seconds(between);
}

DeviceUse read_device_use(const Device& device) {
  if (device.memory_kind() == MemoryKind::cpu) return {};
  DeviceMemory memory = device.memory();
  return {.used = memory.total - memory.free, .total = memory.total};
}

namespace {

/// Empty where the kernel does not say.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return {};
}

}  // namespace

Json machine_json() {
  HostLimits limits = read_host_limits();
  Json json;
  // The kernel asks every processor for its clock each time.
  static const std::string processor = processor_name();
  if (!processor.empty()) json["processor"] = processor;
  json["cpus"] = limits.cpus;
  json["cpus_from"] = limits.cpus_origin;
  auto known = [](std::optional<std::size_t> bytes) {
    return bytes ? Json(*bytes) : Json();
  };
  json["memory_bytes"] = known(limits.memory);
  json["memory_from"] = limits.memory_origin;
  json["memory_free_bytes"] = known(limits.memory_free);
  json["memory_free_from"] = limits.free_origin;
  utsname system{};
  if (::uname(&system) == 0) {
    std::string_view release = system.release;  // without the builder's name
    json["kernel"] = std::string(
        release.substr(0, release.find_first_not_of("0123456789.")));
  }
  return json;
}

}  // namespace penstock
