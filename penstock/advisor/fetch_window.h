#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/monitor/monitor.h"

namespace penstock {

/// A loop whose batches are made by worker processes, by threads, or by the
/// loop's own thread, as it was counted. Times are seconds.
struct FetchWindow {
  std::int64_t batches = 0;
  std::int64_t items = 0;
  double first_batch_s = 0;  ///< the wait for it, which is no part of wait_s
  double wait_s = 0;         ///< the loop waited for a batch
  double host_wait_s = 0;  ///< its thread did, a GPU may have worked meanwhile
  double loop_s = 0;       ///< the loop worked on its batches
  /// Part of wait_s: no worker had a result; none: not known.
  std::optional<double> blocked_s = std::nullopt;
  double cpu_s = 0;  ///< of the loop's process, in wait_s and loop_s

  int workers = 0;          ///< 0: the loop's own thread makes the batches
  bool has_workers = true;  ///< `num_workers` can be set
  /// The workers are threads of the loop's process.
  bool threads = false;
  /// The data set has `__iter__` alone, all of which each worker runs.
  bool iterable = false;
  int prefetch = 0;  ///< batches made ahead by each; 0: not known
  /// Batches of an epoch, behind which none is made ahead; 0: not known, or
  /// without end.
  std::int64_t epoch_batches = 0;
  std::int64_t worker_items = 0;
  double worker_s = 0;      ///< the workers made and sent these items
  double worker_cpu_s = 0;  ///< of their processes; 0 for threads

  /// How those that make items spent the part of their time that was looked
  /// at, and what they were seen at while the loop waited for them.
  struct Looked {
    double seconds = 0;
    double ran_s = 0;     ///< on a processor
    double queued_s = 0;  ///< they could run, and waited for one
    std::int64_t looks = 0;
    std::int64_t in_lock = 0;  ///< they waited for a lock that others may hold
  };
  std::optional<Looked> looked;  ///< none: not known

  /// What moving one batch between processes costs.
  struct Transfer {
    double worker_s = 0;
    double loop_s = 0;
    std::string why_not;  ///< why it cannot be moved; empty: it can
  };
  std::optional<Transfer> transfer;  ///< none: not measured

  /// How the items were made, by whoever made them, and then put together.
  struct Making {
    double item_s = 0;      ///< of all items
    double item_cpu_s = 0;  ///< part of it: on a processor
    double collate_s = 0;   ///< items were put together to batches
    double collate_cpu_s = 0;
    std::vector<double> seconds;  ///< of each item, the newest ones
    /// Of each batch, the newest ones in their order; empty: not known.
    std::vector<double> batch_seconds;
    std::string slowest;  ///< which item took longest: "dataset[12]"
    double slowest_s = 0;
    ThreadSightings seen;  ///< of threads while they made an item
    /// Of the time in which they could run, the share in which they had a
    /// processor.
    double cpu_share = 1;
  };
  std::optional<Making> making;  ///< none: not measured

  /// Seconds of a batch's copy to a GPU: as its memory is, and out of pinned
  /// memory.
  struct Copies {
    double pageable_s = 0;
    double pinned_s = 0;
  };
  std::optional<Copies> copies;  ///< none: not measured, or pinned already

  /// Steps that were timed on a GPU, of which so many left it nothing to do
  /// when the loop came for the next batch; and the share of the time in which
  /// its driver saw it work (see StepParts, Snapshot).
  std::int64_t gpu_steps = 0;
  std::int64_t gpu_drained = 0;
  std::optional<double> gpu_busy;

  int cpus = 1;
  /// Of the time in which the loop's thread could run, the share in which
  /// other work left it a processor.
  double cpu_share = 1;

  double spent_s() const { return wait_s + loop_s; }
  /// Items per second of one worker; none where there were none.
  std::optional<double> worker_rate() const {
    if (worker_s <= 0 || worker_items == 0) return std::nullopt;
    return static_cast<double>(worker_items) / worker_s;
  }
};

}  // namespace penstock
