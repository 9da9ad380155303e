#pragma once

#include <filesystem>

#include "penstock/base/json.h"
#include "penstock/device/device.h"

namespace penstock {

/// What a machine really gives, measured: it takes about three seconds.
///
/// {"memory_bytes_s": copying within memory by one thread,
/// "memory_bytes_s_all": by all, "cores": how many processors' work all of them
/// do together, "drive": {"write_bytes_s", "read_bytes_s", "read_latency_ms"}
/// of the folder's drive, past the page cache where the file system allows it
/// ("direct"), "copy_bytes_s": from pinned memory to the device; null without a
/// GPU}.
Json measure_machine(const std::filesystem::path& folder, Device* device);

/// The same, measured once per machine and kept in `folder`/machine.json: for
/// another processor, number of processors, kernel or device it is measured
/// again, and if `again` is set. "measured": when.
Json machine_profile(const std::filesystem::path& folder, Device* device,
                     bool again = false);
/// What was kept there of this machine, for predictions; nothing is measured.
/// Null if none exists, or it is of another machine.
Json kept_profile(const std::filesystem::path& folder);

}  // namespace penstock
