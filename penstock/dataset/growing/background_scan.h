#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "penstock/base/sync.h"
#include "penstock/dataset/filler.h"
#include "penstock/dataset/packed/later_rows.h"
#include "penstock/dataset/table/table_dataset.h"

namespace penstock {

/// Prepares all rows of a source on threads of its own, and keeps them: in
/// memory where `options.cache` is "ram"; else at low priority in their store,
/// as `penstock prepare` does, where what it has parsed when it ends early is
/// there for the next one. What goes wrong is logged, and then they are not
/// kept. Thread-safe; its end waits until a block is parsed.
class BackgroundScan {
 public:
  enum class Begins : std::uint8_t { at_once, when_told };
  /// `options.open` opens the source.
  BackgroundScan(TableDatasetOptions options, Begins begins);
  ~BackgroundScan();
  /// Once it has begun, nothing.
  void begin();

  /// The rows that are kept.
  std::shared_ptr<const LaterRows> rows() const { return rows_; }

 private:
  void run();
  bool wait_to_begin();
  void scan();

  TableDatasetOptions options_;
  std::atomic<bool> stop_{false};
  const std::shared_ptr<LaterRows> rows_ = std::make_shared<LaterRows>();
  Mutex mutex_;
  Condition changed_;
  bool begun_ PENSTOCK_GUARDED_BY(mutex_);
  Stage thread_;  // last: it uses all the above
};

/// Fills ranges from rows that a scan has kept. One per thread.
class KeptFiller {
 public:
  KeptFiller(FillMeters& meters, const FillerOptions& options)
      : meters_(meters), options_(options) {}
  /// Null as long as `scan` has not all rows.
  template <class Scan>
  SlotFiller* of(const Scan& scan) {
    if (filler_ == nullptr && (rows_ = scan()) != nullptr)
      filler_ = rows_->open_filler(meters_, options_);
    return filler_.get();
  }

 private:
  FillMeters& meters_;
  const FillerOptions options_;
  std::shared_ptr<const Dataset> rows_;
  std::unique_ptr<SlotFiller> filler_;  // looks at them
};

}  // namespace penstock
