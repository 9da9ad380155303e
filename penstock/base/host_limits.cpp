#include "penstock/base/host_limits.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "penstock/base/kernel_files.h"
#include "penstock/base/recent.h"

namespace penstock {
namespace {

using std::filesystem::path;

// Version 1 writes nearly 2^63 where there is no limit.
constexpr std::int64_t kNone = std::int64_t{1} << 62;

/// As the process sees the file, whatever the root of a test.
std::string shown(const path& file, const path& root) {
  return "/" + file.lexically_relative(root).string();
}

void lower(std::optional<std::size_t>& value, std::string& origin,
           std::int64_t to, const std::string& from) {
  auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(0, to));
  if (value && *value <= bytes) return;
  value = bytes;
  origin = from;
}

std::optional<double> quota_of(const path& folder, bool version_2) {
  double quota = -1, period = 0;
  if (version_2) {
    std::ifstream file(folder / "cpu.max");  // "max 100000" means none
    if (!(file >> quota >> period)) return std::nullopt;
  } else {
    quota = static_cast<double>(
        number_in(folder / "cpu.cfs_quota_us").value_or(-1));
    period = static_cast<double>(
        number_in(folder / "cpu.cfs_period_us").value_or(0));
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

struct CpuQuota {
  double cpus = std::numeric_limits<double>::infinity();
  std::string origin;
};

CpuQuota least_quota(const path& root) {
  CpuQuota least;
  const CgroupFolders cpu = cgroup_folders("cpu", root);
  for (const path& folder : cpu.folders) {
    std::optional<double> quota = quota_of(folder, cpu.version_2);
    if (!quota || *quota >= least.cpus) continue;
    least.cpus = *quota;
    least.origin =
        shown(folder / (cpu.version_2 ? "cpu.max" : "cpu.cfs_quota_us"), root);
  }
  return least;
}

/// That of this process, at most 0.1 s old: a start asks for it a dozen times,
/// and each answer takes three files of the kernel.
CpuQuota recent_quota() {
  static auto& recent = *new Recent<CpuQuota>();
  return recent.get("cpu", [] { return least_quota("/"); });
}

// Every group above the process limits it, so all are looked at and the least
// counts. Inactive pages of files are in a group's usage, but the kernel takes
// them away before it refuses memory: they count as free.
void apply_memory_limit(const path& root, HostLimits& limits) {
  CgroupFolders memory = cgroup_folders("memory", root);
  bool v2 = memory.version_2;
  for (const path& folder : memory.folders) {
    path file = folder / (v2 ? "memory.max" : "memory.limit_in_bytes");
    std::optional<std::int64_t> limit = number_in(file);
    if (!limit || *limit >= kNone) continue;
    lower(limits.memory, limits.memory_origin, *limit, shown(file, root));
    std::optional<std::int64_t> used =
        number_in(folder / (v2 ? "memory.current" : "memory.usage_in_bytes"));
    if (!used) continue;
    std::int64_t cache = number_in(folder / "memory.stat",
                                   v2 ? "inactive_file" : "total_inactive_file")
                             .value_or(0);
    lower(limits.memory_free, limits.free_origin,
          *limit - std::max<std::int64_t>(0, *used - cache),
          shown(folder, root));
  }
}

/// Of this process, in bytes: what its file of the kernel says, in a tenth of
/// the time.
std::optional<std::int64_t> soft_limit(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur > rlim_t{kMost})
    return std::nullopt;  // none is the largest number that there is
  return static_cast<std::int64_t>(limit.rlim_cur);
}

/// Limits of the process itself (ulimit) count the stacks of threads, 8 MiB
/// each, as they are made: those of readers and workers are made later.
constexpr std::int64_t kThreads = std::int64_t{64} << 20;

void apply_process_limits(const path& root, HostLimits& limits) {
  const path file = root / "proc/self/limits", use = root / "proc/self/status";
  const bool own = root == "/";
  const std::string all = own ? "" : kernel_text(file);
  /// What is left of it, where there is one.
  auto apply = [&](decltype(RLIMIT_AS) resource, const char* name,
                   const char* used) {
    std::optional<std::size_t> left;
    std::optional<std::int64_t> limit =
        own ? soft_limit(resource) : number_of_line(all, name);
    if (!limit) return left;
    const std::string origin = shown(file, root) + " (" + name + ")";
    lower(limits.memory, limits.memory_origin, *limit, origin);
    auto kib = number_in(use, used);
    if (!kib) return left;
    std::string unused;
    lower(left, unused, *limit - *kib * 1024, origin);
    lower(limits.memory_free, limits.free_origin,
          *limit - *kib * 1024 - kThreads, origin);
    return left;
  };
  limits.addresses_free = apply(RLIMIT_AS, "Max address space", "VmSize:");
  apply(RLIMIT_DATA, "Max data size", "VmData:");
}

/// Of the affinity and the cgroups' quotas.
void apply_cpu_limits(const path& root, HostLimits& limits) {
  cpu_set_t set;
  CPU_ZERO(&set);
  limits.cpus =
      ::sched_getaffinity(0, sizeof(set), &set) == 0
          ? CPU_COUNT(&set)
          : static_cast<double>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  limits.cpus_origin = "affinity";
  CpuQuota quota = root == "/" ? recent_quota() : least_quota(root);
  if (quota.cpus >= limits.cpus) return;
  limits.cpus = quota.cpus;
  limits.cpus_origin = std::move(quota.origin);
}

}  // namespace

double read_cpu_limit() {
  HostLimits limits;
  apply_cpu_limits("/", limits);
  return limits.cpus;
}

std::string read_cpu_affinity() {
  const std::string status = kernel_text("/proc/self/status");
  return std::string(value_of_line(status, "Cpus_allowed_list:").value_or(""));
}

HostLimits read_host_limits(const path& root) {
  HostLimits limits;
  apply_cpu_limits(root, limits);
  const std::string info = kernel_text(root / "proc/meminfo");
  if (auto kib = number_of_line(info, "MemTotal:"))
    lower(limits.memory, limits.memory_origin, *kib * 1024, "MemTotal");
  if (auto kib = number_of_line(info, "MemAvailable:"))
    lower(limits.memory_free, limits.free_origin, *kib * 1024, "MemAvailable");
  apply_memory_limit(root, limits);
  apply_process_limits(root, limits);
  if (limits.memory && limits.memory_free > limits.memory) {
    limits.memory_free = limits.memory;
    limits.free_origin = limits.memory_origin;
  }
  return limits;
}

bool has_addresses_left(std::size_t bytes) {
  void* range = ::mmap(nullptr, bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return false;
  ::munmap(range, bytes);
  return true;
}

}  // namespace penstock
