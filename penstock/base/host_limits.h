#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace penstock {

/// What this process may use, each with where the number comes from. The host's
/// totals never count where a smaller limit holds. What the system does not
/// report is missing.
struct HostLimits {
  double cpus = 1;          ///< min(affinity, cgroup quota); may be fractional
  std::string cpus_origin;  ///< "affinity", "/sys/fs/cgroup/job/cpu.max", ...
  /// The smallest limit, in bytes, and where it is from: "MemTotal",
  /// "/sys/fs/cgroup/memory/job/memory.limit_in_bytes",
  /// "/proc/self/limits (Max address space)", ...
  std::optional<std::size_t> memory;
  std::string memory_origin;
  /// What may still be allocated: the least of MemAvailable, of what every
  /// cgroup, its own and those above it, and each limit of the process (ulimit
  /// -v, -d; less 64 MiB for the stacks of its threads) has left. File cache
  /// that the kernel would drop counts as free. Never more than `memory`.
  std::optional<std::size_t> memory_free;
  std::string free_origin;  ///< "MemAvailable", "/sys/fs/cgroup/job", ...
  /// What is left of a limit on the address space (RLIMIT_AS, ulimit -v). It
  /// counts all that is mapped: files, and memory that was never touched, too.
  std::optional<std::size_t> addresses_free;
};

/// `cpus` of these alone.
double read_cpu_limit();

/// The numbers of the processors that this process may run on, as the kernel
/// lists them: "0-3,8". Empty where it does not tell.
std::string read_cpu_affinity();

/// Reads the current limits (quotas of processors at most 0.1 s old); cgroups
/// of version 1 and 2. `root` is "/" except in tests, which pass a made-up
/// tree.
HostLimits read_host_limits(const std::filesystem::path& root = "/");

/// False where a limit on the address space (ulimit -v) leaves no range of that
/// size to this process.
bool has_addresses_left(std::size_t bytes);

}  // namespace penstock
