#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "penstock/job/job.h"

namespace penstock {

struct PrepareOptions {
  StopFlag stop = {};
  /// Statistics that were saved, to be applied; missing: they are fitted.
  std::optional<Json> statistics = {};
  /// Called before the scan with what it may hold. May be empty.
  std::function<void(const std::string& limit)> scanning = {};
  /// Called with the tier plan before the memory is allocated. May be empty.
  std::function<void(const TierPlan&)> planned = {};
};

/// Reads and prepares the rows of a job's source: the one place that does, for
/// loaders, runs, `penstock batch` and the quick start. Throws what reading
/// and preparing throw.
std::shared_ptr<const TableDataset> prepare_rows(
    const Job& job, Device& device, const PrepareOptions& options = {});

}  // namespace penstock
