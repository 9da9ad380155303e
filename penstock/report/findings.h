#pragma once

#include <optional>
#include <string>
#include <vector>

#include "penstock/session/session.h"

namespace penstock {

/// Something that a run's numbers show beside what limits it.
struct Finding {
  std::string what;     ///< one sentence
  std::string because;  ///< the measured numbers behind it
  std::string next;     ///< what could be done
};

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
