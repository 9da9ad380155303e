#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "penstock/run/timeline.h"

namespace penstock {

/// Something that a run's numbers show beside what limits it.
struct Finding {
  std::string what;     ///< one sentence
  std::string because;  ///< the measured numbers behind it
  std::string next;     ///< what could be done
};

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
std::optional<Finding> memory_spilled(
    const std::optional<SpilledMemory>& spilled, bool driver_moves);

/// The device waits for the host between steps that are short: the host cannot
/// queue them as fast. A larger batch would have fewer of them; it changes the
/// mathematics, and is for the user to decide.
std::optional<Finding> bound_by_launches(const StepParts& parts);

/// All of them, in this order. `parts`: of the whole run.
std::vector<Finding> findings_of(const std::optional<SpilledMemory>& spilled,
                                 const StepParts& parts);

}  // namespace penstock
