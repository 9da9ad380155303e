#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/dataset/dataset_base.h"
#include "penstock/sampling/sampling.h"
#include "penstock/sources/sources.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

struct PreparationPlan;

/// How far a scan has come.
struct ScanProgress {
  std::int64_t rows = 0, bytes = 0;           ///< read and parsed
  std::optional<std::int64_t> expected = {};  ///< rows in all, where known
  /// Of the source's bytes, from 0 to 1, where its chunks or its rows are
  /// known; else 0.
  double share = 0;
  std::int64_t stored_bytes = 0;  ///< of the values, as they will be kept
  /// Of all these, what an interrupted scan had left.
  std::int64_t found_rows = 0;
  double found_share = 0;
};

/// When rows are prepared that need not all be known before the first batch.
enum class Preparing : std::uint8_t {
  automatic,  ///< meanwhile where rows are packed as a stream, else before
  before,     ///< the first batch
  meanwhile,  ///< while batches are made
};

/// Which rows a data set has, and what of them.
struct RowsRecipe {
  SourceSpec source;
  std::vector<Field> fields;
  Split split;
  Drawing drawing;         ///< of the train side
  std::uint64_t seed = 0;  ///< of samples that are packed in a keyed order
  /// Statistics of an earlier run, to be applied instead of fitting.
  std::optional<Json> statistics = {};
  /// Where fields are fitted over the rows of other sources too: which these
  /// are, so that a store is that of all of them. Null: they are fitted alone.
  Json fitted_with = {};
  /// Some of these others do not say when their rows change.
  bool fitted_with_unknown = false;
  /// What identifies the rows, where their contents do not; empty: they do.
  std::string fingerprint = {};
  /// Rejects as bad rows what else shows when they are encoded or finished.
  bool checks = false;
};

/// Where prepared rows are kept, and for how long.
struct RowsKeeping {
  std::string cache = "auto";  ///< auto, device, pinned, ram, disk or none
  TierBudgets budgets = {};    ///< of `auto`
  /// Where stores and temporary files are; empty: default_store_dir().
  std::string store_dir = {};
  Preparing preparing = Preparing::automatic;
  /// Rows by position go to files as they are parsed, so that a scan that is
  /// interrupted continues where it was, and its memory does not grow with
  /// them.
  bool resumable = false;
  /// The store of an earlier run is not looked at, but replaced.
  bool remake = false;
  /// Bytes of host memory that the scan may hold before values go to temporary
  /// files; empty: a share of what is free.
  std::optional<std::size_t> scan_bytes = {};
};

/// What batches will be made of the rows.
struct RowsUse {
  std::int64_t batch_rows = 1;  ///< of the largest batch, for messages
  /// How often each row comes, at most; missing: nobody knows. What pays only
  /// where rows come again is left out where they do not.
  std::optional<std::int64_t> epochs = 1;
  std::int64_t first_epoch = 0;  ///< in which it begins: it may be resumed
  int ranks = 1;                 ///< that share the rows of each epoch
  /// How many of them share the memory of this machine; missing: it is unknown.
  std::optional<int> ranks_here = {};
  /// What the loaders' rings will take; empty: nothing.
  std::function<RingBytes(const DatasetFacts&)> ring_bytes = {};
  /// Batches are changed on the host after they are filled, so that the device
  /// neither keeps nor finishes rows.
  bool batches_on_host = false;
};

/// Who hears how far the preparation has come. Each may be empty.
struct PreparationListener {
  /// Called before the scan, with a line for people each: what is expected,
  /// marked ~, where the source can say so, and what it may hold.
  std::function<void(const std::string& line)> scanning = {};
  /// Called after each block of the scan, by one thread at a time, which waits
  /// for it.
  std::function<void(const ScanProgress&)> scanned = {};
  /// Called with the tier plan before the memory is allocated.
  std::function<void(const TierPlan&)> planned = {};
};

/// How the preparation runs.
struct PreparationWork {
  int workers = 1;     ///< threads that parse; 0: on the caller's
  StopFlag stop = {};  ///< ends what waits for other processes
  /// Opens the source once more, to be read beside batches until `stop` is set.
  /// Empty: all rows are prepared before the first batch.
  std::function<std::unique_ptr<Source>(StopFlag stop)> open = {};
  /// Ends with the plan: of the result, only what facts() says of rows and plan
  /// is there.
  bool plan_only = false;
  /// What decide() has chosen, for DatasetFacts; null: it was not asked.
  std::shared_ptr<const PreparationPlan> preparation = {};
};

/// What belongs to a data set and how it is prepared. Whoever needs a part of
/// it takes that part.
struct TableDatasetOptions : RowsRecipe,
                             RowsKeeping,
                             RowsUse,
                             PreparationListener,
                             PreparationWork {};

/// What a source must give for these rows, after the key.
std::vector<ColumnRequest> requests_of(const RowsRecipe& recipe);

}  // namespace penstock
