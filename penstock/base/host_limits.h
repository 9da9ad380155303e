#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace penstock {

/// What this process may use, each with where the number comes from. The
/// host's totals never count where something smaller holds. What the system
/// does not tell is missing.
struct HostLimits {
  double cpus = 1;          ///< min(affinity, cgroup quota); may be fractional
  std::string cpus_origin;  ///< "affinity", "/sys/fs/cgroup/job/cpu.max", ...
  /// The smallest limit, in bytes, and whose it is: "MemTotal",
  /// "/sys/fs/cgroup/memory/job/memory.limit_in_bytes", ...
  std::optional<std::size_t> memory;
  std::string memory_origin;
  /// What may still be taken: the least of MemAvailable and of what every
  /// cgroup, its own and those above it, has left. File cache that the kernel
  /// would give up counts as free. Never more than `memory`.
  std::optional<std::size_t> memory_free;
  std::string free_origin;  ///< "MemAvailable", "/sys/fs/cgroup/job", ...
};

/// Reads the limits anew; cgroups of version 1 and 2. `root` is "/" except in
/// tests, which hand in a made-up tree.
HostLimits read_host_limits(const std::filesystem::path& root = "/");

/// False where a limit on addresses (ulimit -v) leaves no range of that size to
/// this process.
bool has_addresses_left(std::size_t bytes);

}  // namespace penstock
