#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "penstock/base/host_limits.h"
#include "penstock/base/json.h"
#include "penstock/device/device.h"

namespace penstock {

/// What this process has used so far. A number that the system does not report
/// is missing.
struct HostUse {
  std::optional<double> cpu_seconds;
  std::optional<std::size_t> resident_bytes;
  std::optional<std::size_t> peak_bytes;
  std::optional<std::int64_t> throttled_us;  ///< by the cgroup's CPU quota
  std::optional<std::int64_t> read_bytes;    ///< from storage devices
  /// Its threads could run, and other threads or programs had the processors;
  /// summed over those that have not ended. read_host_use() leaves it out.
  std::optional<double> queued_seconds;
};
/// What was used between two readings; memory is that of the later one.
HostUse use_between(const HostUse& earlier, const HostUse& later);
/// `queued_seconds`, from /proc/self/task/*/schedstat: about 15 us per thread.
std::optional<double> processor_queue_seconds(
    const std::filesystem::path& root = "/");
/// Of those the processor time alone, which takes about a microsecond.
std::optional<double> cpu_seconds_used();
/// `root` is "/" except in tests, which hand in a made-up tree.
HostUse read_host_use(const std::filesystem::path& root = "/");

/// Memory of this process (RSS): pages that others map, too, count whole. Pages
/// of mapped files can be dropped and read again; others cannot.
struct MemoryShare {
  std::size_t anonymous = 0;  ///< bytes
  std::size_t files = 0;      ///< of mapped files, programs too
};
/// Missing where the system does not report it.
std::optional<MemoryShare> read_memory_share(
    const std::filesystem::path& root = "/");

/// Processors that were busy for this process between two readings, on the
/// average; missing where one of them did not tell, or no time passed.
std::optional<double> cpus_used(const HostUse& earlier, const HostUse& later,
                                Nanoseconds between);

/// A device's memory, of all who use it. Missing where the device has none of
/// its own (cpu): then it is the host's.
struct DeviceUse {
  std::optional<std::size_t> used;
  std::optional<std::size_t> total;
};
DeviceUse read_device_use(const Device& device);

/// For reports: processor, cores, limits with their origins, system.
Json machine_json();

}  // namespace penstock
