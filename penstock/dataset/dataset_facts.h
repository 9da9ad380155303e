#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/cache/cache.h"
#include "penstock/dataset/device_fields.h"
#include "penstock/sampling/sampling.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

/// What is known of a data set once it is there.
struct DatasetFacts {
  std::int64_t rows = 0;
  std::array<std::int64_t, 2> on_side = {};  ///< train, val
  std::vector<Output> outputs;               ///< of a batch
  /// For each output whose lengths differ, in their order: the elements of the
  /// longest sample.
  std::vector<std::int32_t> longest = {};
  TierPlan plan = {};  ///< where the rows are stored, and why there
  /// A batch is filled as a whole, by one worker: a row depends on the others
  /// in its batch.
  bool whole_batches = false;
  /// A side names a sample more than once: select() gives an id for several
  /// ranks.
  bool repeats = false;
  /// The train side has no end, so no epochs: an order goes through it as it
  /// is. Its rows count as many as there may ever be.
  bool endless = false;
  /// I/O threads that gain something where batches are read from a source; 0
  /// where they are not.
  int most_readers = 0;
  /// Of rows that batches read from chunks that are decoded: how many chunks
  /// there are, their bytes when decoded, and how many of these stay in memory;
  /// else 0.
  std::int64_t chunks = 0;
  std::size_t decoded_bytes = 0, kept_bytes = 0;
  /// How the train side is taken from several sources; null: it has one.
  std::shared_ptr<const Mixture> mixture = {};
  /// What the samples of the train side are drawn by; null: each comes once.
  std::shared_ptr<const Draws> draws = {};
  /// What a device finishes, on the train side and on others.
  std::array<std::vector<DeviceField>, 2> device_fields = {};

  const std::vector<DeviceField>& device_fields_of(Side side) const {
    return device_fields[side == Side::train ? 0 : 1];
  }
};

}  // namespace penstock
