#pragma once

#include <optional>
#include <string>

#include "penstock/monitor/monitor.h"

namespace penstock {

/// Share of its busy time in which a stage used a processor.
double cpu_share(const StageNumbers& stage);
/// The stages of a loader that are not needed when prepared rows are kept.
bool reads_source(const StageNumbers& stage);
/// Whether the rows of batches come out of such a stage.
bool makes_batches(StageWork work);
/// Processors that the stages used, on the average.
double processors_in_use(const Snapshot& window);

/// Why a stage takes its time, by what its meter and the host tell: one
/// sentence, which at least names the stage.
std::string cause_in_stage(const Snapshot& window, const StageNumbers& stage);

/// A few pieces of a stage's work take so long that those after them wait: one
/// sentence; empty where that is not so. Meters know no samples: a run's
/// longest steps name theirs.
std::optional<std::string> single_pieces(const StageNumbers& stage);

/// As if one lock let one of a stage's threads work at a time: all together
/// they use about one processor, of those that they could have, and no answer
/// of a source is waited for. More threads would wait for the same lock.
bool takes_turns(const Snapshot& window, const StageNumbers& stage);
/// The same, or they were seen waiting for a lock under which one of them
/// sleeps, say.
bool shares_lock(const Snapshot& window, const StageNumbers& stage);
/// Its threads were seen waiting for most of the time, and for nothing that one
/// of them holds: more of them need no more processors.
bool waits_for_others(const StageNumbers& stage);

}  // namespace penstock
