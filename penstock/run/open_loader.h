#pragma once

#include <memory>
#include <optional>

#include "penstock/run/job.h"

namespace penstock {

/// A job's batches, ready on its device: the loader with all that it stands
/// on, for a loop of your own.
///
///     auto loader = penstock::open_loader(job);
///     while (std::optional<penstock::Batch> batch = loader->next())
///       my_step(batch->tensors(), loader->stream());
///
/// One thread at a time. Batches must be gone before it is destroyed.
class JobLoader {
 public:
  virtual ~JobLoader() = default;
  /// The next batch of the job's epochs; work queued on stream() after this
  /// call sees its data. nullopt after the last one (`train.epochs`,
  /// `train.max_steps`). Throws what reading and preparing throw.
  virtual std::optional<Batch> next() = 0;
  virtual Stream& stream() = 0;
  virtual Device& device() = 0;
  virtual const Dataset& dataset() const = 0;
  virtual const Loader& loader() const = 0;
};

/// Reads and prepares the data set before it returns. Throws Error.
std::unique_ptr<JobLoader> open_loader(const Job& job);

}  // namespace penstock
