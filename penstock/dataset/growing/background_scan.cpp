#include "penstock/dataset/growing/background_scan.h"

#include <sys/resource.h>

#include <chrono>
#include <string>
#include <utility>

#include "penstock/base/shown.h"

namespace penstock {
namespace {

/// Of what takes long: batches come first. What is in memory already is packed
/// in seconds, which makes each batch cheaper.
constexpr int kNice = 10;
constexpr Nanoseconds kTellEvery = std::chrono::seconds(10);

}  // namespace

BackgroundScan::BackgroundScan(TableDatasetOptions options, Begins begins)
    : options_(std::move(options)),
      begun_(begins == Begins::at_once),
      thread_({.name = "store",
               .workers = 1,
               .body = [this](int) { run(); },
               .last = [this] { rows_->end(); }}) {}

BackgroundScan::~BackgroundScan() {
  stop_ = true;
  begin();
  thread_.join();
}

void BackgroundScan::begin() {
  Lock lock(mutex_);
  if (begun_) return;
  begun_ = true;
  changed_.notify_all();
}

/// False: it ends before it begins.
bool BackgroundScan::wait_to_begin() {
  Lock lock(mutex_);
  while (!begun_) changed_.wait(mutex_);
  return !stop_;
}

void BackgroundScan::run() {
  if (!wait_to_begin()) return;
  // Of this thread and those that it starts: on Linux each has its own.
  if (options_.cache != "ram") ::setpriority(PRIO_PROCESS, 0, kNice);
  try {
    scan();
  } catch (const Error& error) {
    if (is_stop(error)) return;
    log(LogLevel::warning, std::string("the prepared rows are not kept, and "
                                       "each batch prepares its own rows: ") +
                               error.what());
  } catch (...) {
    log_exception(LogLevel::warning, "the prepared rows are not kept");
  }
}

void BackgroundScan::scan() {
  TableDatasetOptions all = options_;
  const bool in_memory = all.cache == "ram";
  if (!in_memory) all.cache = "disk";
  all.budgets = {};
  // A store of a table is told from another one by some of its rows alone.
  if (in_memory) all.budgets.disk = 0;
  all.resumable = !in_memory;
  all.stop = &stop_;
  all.ring_bytes = nullptr;
  all.batches_on_host = true;
  static_cast<PreparationListener&>(all) = {};
  Nanoseconds next = wall_clock().now() + kTellEvery;
  all.scanned = [this, next](const ScanProgress& progress) mutable {
    end_if_stopped(&stop_);
    if (wall_clock().now() < next) return;
    next = wall_clock().now() + kTellEvery;
    log(LogLevel::info, "in the background " +
                            shown_percent(progress.share, 0) +
                            " of the rows are prepared");
  };
  struct Kept {
    std::shared_ptr<Device> device;  // which the rows must not outlive
    std::shared_ptr<const Dataset> rows;
  };
  auto kept = std::make_shared<Kept>(Kept{open_device({.kind = "cpu"}), {}});
  kept->rows = TableDataset::prepare(all, options_.open(&stop_), *kept->device);
  rows_->set({kept, kept->rows.get()});
  log(LogLevel::info,
      std::string("all rows are prepared: batches are now read from ") +
          (in_memory ? "memory" : "the store"));
}

}  // namespace penstock
