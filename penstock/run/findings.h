#pragma once

#include <cstddef>
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

/// The device's memory was full, and from then on steps took much longer: the
/// driver moves memory of the device to that of the host, as drivers for
/// Windows and its Linux do, and fails nothing. `total`: of the device, in
/// bytes. Never for a device whose memory was not measured.
std::optional<Finding> memory_spilled(const TimelineNumbers& timeline,
                                      std::optional<std::size_t> total);

/// The device waits for the host between steps that are short: the host cannot
/// queue them as fast. A larger batch would have fewer of them; it changes the
/// mathematics, and is for the user to decide.
std::optional<Finding> bound_by_launches(const StepParts& parts);

/// All of them, in this order. `parts`: of the whole run.
std::vector<Finding> findings_of(const TimelineNumbers& timeline,
                                 const StepParts& parts, const Device& device);

}  // namespace penstock
