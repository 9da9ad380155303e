#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

#include "penstock/advisor/advisor.h"
#include "penstock/session/timeline.h"

namespace penstock {

/// Whether the driver of a GPU moves memory to the host where its own is full,
/// and fails nothing, as that for Windows and its Linux does; that for Linux
/// does not. `root` is "/" except in tests.
bool driver_moves_memory(const std::filesystem::path& root = "/");

/// The device's memory was full, and from then on steps took much longer: the
/// driver may have moved memory of the device to that of the host. Where it
/// never does, longer samples or another phase of the run did both. `total`: of
/// the device, in bytes. Never for a device whose memory was not measured.
std::optional<SpilledMemory> spilled_memory(const TimelineNumbers& timeline,
                                            std::optional<std::size_t> total);

}  // namespace penstock
