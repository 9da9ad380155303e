#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "penstock/base/json.h"

namespace penstock {

/// What this process may use, each with where the number comes from. The
/// host's totals never count where something smaller holds.
struct HostLimits {
  double cpus = 1;          ///< min(affinity, cgroup quota); may be fractional
  std::string cpus_origin;  ///< "affinity", "cgroup v2 /x/cpu.max", ...
  std::size_t memory = 0;   ///< the smallest limit, in bytes
  std::size_t memory_free = 0;  ///< what of it may still be taken
  std::string memory_origin;
};

/// `root` is "/" except in tests, which hand in a made-up tree.
HostLimits read_host_limits(const std::filesystem::path& root = "/");

/// What this process has used up to now. A number that the system does not
/// tell is missing.
struct HostUse {
  std::optional<double> cpu_seconds;
  std::optional<std::size_t> resident_bytes;
  std::optional<std::size_t> peak_bytes;
  std::optional<std::int64_t> throttled_us;  ///< by the cgroup's CPU quota
  std::optional<std::int64_t> read_bytes;    ///< from storage devices
};
HostUse read_host_use(const std::filesystem::path& root = "/");

/// For reports: processor, cores, limits with their origins, system.
Json machine_json();

}  // namespace penstock
