#pragma once

/// What limits a run, and what to change: pure functions of measured numbers.
///
///     Verdict verdict = diagnose(window);
///     std::printf("%s\n", verdict.cause.c_str());
///     for (const Action& action : verdict.actions)
///       std::printf("set %s to %s\n", action.knob.c_str(),
///                   action.to.dump().c_str());

#include <optional>
#include <string>
#include <vector>

#include "penstock/advisor/fetch_window.h"
#include "penstock/advisor/in_order.h"
#include "penstock/advisor/outside.h"
#include "penstock/advisor/pipeline.h"
#include "penstock/advisor/tuned_pipeline.h"
#include "penstock/advisor/tuner.h"
#include "penstock/advisor/verdict.h"
#include "penstock/monitor/monitor.h"

namespace penstock {

struct TierPlan;

/// Finds what limits a finished window: a pure function of its numbers.
///
/// A window in which the accelerator worked more than 90 % of the time is
/// compute-bound. Else the largest part decides; for data, the pool of threads
/// with the lowest rate, and in it the stage that keeps it busy longest. What
/// was not measured never counts as zero, and what does not fit is not advised.
Verdict diagnose(const Snapshot& window);

/// The same for a loop whose batches are made elsewhere than in the engine: by
/// worker processes, by threads or by the loop itself. What is not waiting
/// counts as the accelerator's work. More workers are offered only for what is
/// left of their gain after batches have been moved between processes.
Verdict diagnose(const FetchWindow& window);
/// `unknown`, `data` or `compute`: the first part of that verdict.
Limit limit_of(const FetchWindow& window);
/// Why its items take long, in one sentence, and what could be done; empty
/// where that was not measured or nothing stands out.
struct ItemCause {
  Limit limit = Limit::data;  ///< `order`: single items hold up the others
  std::string stage;          ///< "__getitem__", "__iter__" or "collate_fn"
  std::string cause;
  std::string next;

  friend bool operator==(const ItemCause&, const ItemCause&) = default;
};
std::optional<ItemCause> cause_in_items(const FetchWindow& window);
/// Whether a lock is a good part of what items wait for: more workers would
/// wait for it, too.
bool waits_in_lock(const FetchWindow& window);
/// What could be done about that.
const char* instead_of_lock();
/// What makes the items of a window: "__getitem__", or "__iter__".
const char* made_by(const FetchWindow& window);
/// Whether a loop waits for so long that its input limits it.
bool waits_for_batches(double wait_s, double loop_s);

/// The tiers of a plan as a snapshot carries them.
std::vector<TierCapacity> tiers_of(const TierPlan& plan);

}  // namespace penstock
