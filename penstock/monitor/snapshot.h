#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/exec/exec.h"
#include "penstock/monitor/host.h"
#include "penstock/monitor/step_clock.h"

namespace penstock {

/// A cache level for the prepared rows of a data set, as it was measured before
/// anything was allocated.
struct TierCapacity {
  std::string name;  ///< what `loader.cache` calls it: "device", "ram", "none"
  bool fits = false;
  bool in_use = false;
  double holds = 0;  ///< of the rows, where it is in use; 1: all
  std::string why;   ///< "fits", "needs 3.1 GiB on the device, ..."
  /// It would fit, and a budget allows less: "loader.cache.ram_gib".
  std::string lacks_budget = {};
};

/// The device's memory was full, and from then on steps took longer.
struct SpilledMemory {
  double bytes = 0, total = 0;
  double step_before_s = 0, step_s = 0;  ///< medians
};

/// All numbers of a run at one moment, or of a window between two.
struct Snapshot {
  StepParts parts;
  /// That the loop took, those of steps that were not timed, too; 0: not known.
  std::int64_t samples = 0;
  /// The steps were timed on a clock that stands still while the host works.
  /// Their parts cannot be compared with the times of the stages, which are
  /// by the wall clock.
  bool virtual_time = false;
  std::vector<StageNumbers> stages;  ///< of the loader, in order of the data
  Nanoseconds wait_order{0};  ///< part of wait_data: out-of-order results
  /// Where every stage has a queue behind it (`places`): each restores the
  /// order of its batches.
  bool restores_order = false;
  std::optional<StageNumbers> copy;  ///< to the device; if measured
  std::optional<double> step_cv;     ///< of the steps' times; if measured
  /// Share of the time in which the GPU's driver saw it work (GpuUse); if
  /// measured.
  std::optional<double> gpu_busy;
  /// If it was seen, and the driver moves memory to the host.
  std::optional<SpilledMemory> spilled;
  std::int64_t batch_size = 0;      ///< `loader.batch_size`; 0: not known
  int prefetch = 0;                 ///< batches ready ahead; 0: not known
  std::vector<TierCapacity> tiers;  ///< the fastest first; empty: not measured
  /// What would spare work where samples are finished, in the stages `pack` and
  /// `gather`, as settings of the fields; empty: nothing is known.
  std::string cheaper;
  HostLimits limits;
  int loader_cpus = 0;  ///< that the loader may use, `loader.cpus`; 0: all
  HostUse use;
};

/// Rows of the source that lie in a sample on average: 1, but where samples are
/// bins of documents. Stages count rows.
double rows_per_sample(const Snapshot& window);
/// The same window, whose stages count samples.
Snapshot in_samples(Snapshot window);

}  // namespace penstock
