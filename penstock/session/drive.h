#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// What a file lies on.
struct Drive {
  std::string mount;   ///< "/home"
  std::string device;  ///< "/dev/nvme0n1p2", "tmpfs", "server:/export"
  std::string type;    ///< "ext4"
  /// As measured by read_rate(); none: it was not, or could not be.
  std::optional<double> bytes_per_s = {};

  bool in_memory() const { return type == "tmpfs" || type == "ramfs"; }
  Json json() const;
};

/// The drive of a path that is there; `mounts` as /proc/self/mountinfo has
/// them.
Drive drive_of(const std::filesystem::path& path, const std::string& mounts);
/// The mounts of this process; empty where the system does not say.
std::string read_mounts();

/// Bytes that are read of these files per second, one after the other, by one
/// thread, with none of them in the system's memory: at most 256 MiB, and no
/// longer than half a second. None where less than 1 MiB could be read, or
/// where the files are in memory anyway.
std::optional<double> read_rate(
    const std::vector<std::filesystem::path>& files);

}  // namespace penstock
