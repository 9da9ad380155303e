#pragma once

#include <optional>
#include <string>

#include "penstock/advisor/pools.h"

namespace penstock {

/// Samples per second.
double rate_in(const Snapshot& window);
/// Of the steps alone; endless where they take no time.
double step_rate(const Snapshot& window);
/// Share of the wall time in which the loop waits for its input.
double waits_in(const Snapshot& window);

/// That of a pool, or of the one stage without a pool.
const std::string& name_of(const Pool& pool);
/// 0 where there is no such pool.
double pool_rate(const Snapshot& window, const std::string& name);
/// Processors that one thread of a pool uses while it is busy.
double cpu_share(const Pool& pool);

/// The threads of no pool are at work all the time: batches ahead, which bound
/// how many reads are under way, are too few for them. Never of a described
/// pipeline, which has a queue behind each stage.
bool threads_lack_work(const Snapshot& window);
/// How many pieces of work a batch is shared into, by what was read; none where
/// nothing was, or of a described pipeline.
std::optional<double> requests_per_batch(const Snapshot& window);

/// A rate, or a number of processors, for people.
std::string rounded(double number);

}  // namespace penstock
