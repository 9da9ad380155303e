#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/cache/cache.h"
#include "penstock/dataset/device_fields.h"
#include "penstock/dataset/table/block_parser.h"
#include "penstock/monitor/monitor.h"
#include "penstock/sampling/sampling.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

class Dataset;
class LaterRows;
class PackedBins;
struct PreparationPlan;

/// One of the data sets that are mixed.
struct MixedRows {
  std::shared_ptr<const Dataset> rows;
  double weight = 1;
  Json about = {};  ///< what decides its sides; part of the fingerprint
};

/// Fields with what was found of them: what a model is made for.
struct FittedFields {
  std::vector<Field> fields = {};     ///< in the order of their tensors
  std::vector<Json> statistics = {};  ///< by field; null where it needs none
  /// The columns that the fields read, as their source describes them.
  std::vector<ColumnInfo> columns = {};

  /// Those of one field. Throws Error(internal) where there is no such field.
  const Json& statistics_of(const std::string& field) const;
};

/// The columns of these fields that the source has, each once.
std::vector<ColumnInfo> columns_of(const std::vector<Field>& fields,
                                   const Schema& schema);

/// What the scan found that rows were prepared by, in this run or in the one
/// that has written their store.
struct ScanFacts {
  std::int64_t too_short = 0;  ///< rows with a list shorter than `min`
  /// Rows that `source.on_bad: "skip"` left out: how many, and the first of
  /// them by ascending key.
  std::int64_t bad_rows = 0;
  std::vector<BadRow> quarantine = {};
  /// What it cost, stage by stage; none where the rows are those of a store.
  std::vector<StageNumbers> stages = {};

  std::int64_t left_out() const { return too_short + bad_rows; }
};

/// What is known of a data set once it is there.
struct DatasetFacts {
  std::int64_t rows = 0;
  std::array<std::int64_t, 3> on_side = {};  ///< train, val, test
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
  /// The train side has no end, so no epochs: an order goes through it
  /// unchanged. Its rows count as many as there may ever be.
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
  /// Of the rows of one source, whether they were scanned or are read by
  /// position; null of all others.
  std::shared_ptr<const FittedFields> fitted = {};
  /// How the rows of each source are prepared, and why; of a mixture in the
  /// order of its parts. None where rows are arrays or come from a function.
  std::vector<std::shared_ptr<const PreparationPlan>> preparations = {};
  /// Null: the rows were not scanned.
  std::shared_ptr<const ScanFacts> scan = {};
  /// Of rows that were scanned: by field its runs, or in tier `none` their
  /// lengths alone; null where its rows are of equal size.
  std::vector<std::shared_ptr<const RunTable>> runs = {};
  /// The data sets that are mixed, in their order; none: it is no mixture.
  std::vector<MixedRows> parts = {};
  /// Of samples that stand in bins: which are in a bin, and how full bins are;
  /// null where each stands by itself.
  std::shared_ptr<const PackedBins> bins = {};
  /// Of rows that are prepared while batches are made: all of them in their
  /// store, where they get there. Null: they are prepared before.
  std::shared_ptr<const LaterRows> later = {};
  /// Where Dataset::fingerprint() would read much memory: the same of some of
  /// the rows, which costs little, and does not see all. As long as the data
  /// set is there; empty: there is no need.
  std::function<std::string()> fingerprint_of_some = {};
  /// What a device finishes, on the train side and on others.
  std::array<std::vector<DeviceField>, 2> device_fields = {};

  /// Those of these rows, or of each source that is mixed, as far as they are
  /// known.
  std::vector<const FittedFields*> all_fitted() const;
  const std::vector<DeviceField>& device_fields_of(Side side) const {
    return device_fields[side == Side::train ? 0 : 1];
  }
};

}  // namespace penstock
