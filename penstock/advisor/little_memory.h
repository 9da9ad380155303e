#pragma once

#include <optional>
#include <string>

#include "penstock/advisor/verdict.h"
#include "penstock/monitor/monitor.h"

namespace penstock {

/// The verdict on steps that became slow when the device's memory was full: its
/// driver moves what does not fit to the host. Where the rows are kept on the
/// device, to keep them on the host is offered, with the rate that steps of
/// before would bring. `measured`: the numbers of the window in words. Missing
/// where that was not seen, or the steps do not clearly limit.
std::optional<Verdict> memory_is_full(const Snapshot& window,
                                      const std::string& measured);
/// The same beside another limit: its numbers, for `because`; empty where that
/// was not seen.
std::string memory_is_full_too(const Snapshot& window);
/// Where the rows leave the device, and what that costs; its gain is left open.
/// Missing where they are not there, or no memory of the host has room.
std::optional<Action> rows_off_device(const Snapshot& window);
/// Seconds of a window's steps, if none had become slow.
double compute_before(const Snapshot& window);

/// Rows are read again in each epoch, since the memory or the budget that they
/// may use does not hold them: how many are, in words, and why. Empty where all
/// rows are kept, or none are because nothing else was asked for.
std::string rows_read_again(const Snapshot& window);

}  // namespace penstock
