#include "penstock/dataset/table/table_preparation.h"

#include <algorithm>
#include <utility>

#include "penstock/dataset/indexed/expected_rows.h"

namespace penstock {

TablePreparation::TablePreparation(Begun, const TableDatasetOptions& options,
                                   BoundSource source, Device& device)
    : origin_(std::make_shared<const TableOrigin>(options, std::move(source))),
      device_(device),
      meter_("store", std::max(1, options.workers)),
      share_out_([this](std::int64_t count, const RangeWork& work) {
        in_ranges(origin_->options.workers, count,
                  [&](std::int64_t begin, std::int64_t end) {
                    std::optional<BusyScope> busy;  // the first range is this
                    if (begin > 0) busy.emplace(meter_);  // thread's
                    work(begin, end);
                  });
      }) {}

TablePreparation::TablePreparation(const TableDatasetOptions& options,
                                   BoundSource source, Device& device)
    : TablePreparation(Begun(), options, std::move(source), device) {
  if (options.remake) {
    file_ = origin_->stores.back();
  } else {
    take_from_store();
    if (stored_ == nullptr) take_in_turn();
  }
  if (stored_ == nullptr)
    scanned_ = std::make_unique<ScannedTable>(*origin_, file_, meter_);
  else if (options.resumable)
    remove_what_is_left();
}

TablePreparation::~TablePreparation() = default;

void TablePreparation::take_from_store() {
  for (const TableStore& file : origin_->stores) {
    file_ = file;
    const std::optional<StoredTable> rows = open_stored(origin_, file);
    if (rows) stored_ = placed(*rows);
    if (stored_ != nullptr) return;
  }
}

/// Null: the store turned out to be damaged.
std::shared_ptr<const TableDataset> TablePreparation::placed(
    const StoredTable& stored) const {
  const TableDatasetOptions& options = origin_->options;
  const std::filesystem::path& path = stored.placed.store->path();
  Placer placer(options, measured(*origin_, stored), device_, path);
  PlacedRows rows;
  if (!options.plan_only) try {
      const TierPlan& plan = placer.plan();
      rows = plan.tier == Tier::disk && plan.places.size() == 1
                 ? stored.placed
                 : copied_rows(*origin_, stored.placed, placer, device_);
      log(LogLevel::info,
          "no initial scan is needed: the rows are in " + path.string());
    } catch (const Error& error) {
      scan_instead(error);
      return nullptr;
    }
  return std::shared_ptr<const TableDataset>(
      new TableDataset(origin_, std::make_shared<const FoundRows>(stored.found),
                       std::move(rows), placer.measured(), placer.placement()));
}

/// Where there is no store yet, and others may be making it: waits for them.
void TablePreparation::take_in_turn() {
  const TableDatasetOptions& options = origin_->options;
  auto written = [&] {
    std::error_code none;
    return std::filesystem::last_write_time(file_.path, none);
  };
  const auto before = written();
  if (always_writes_store(options, file_)) {
    const bool waited = wait_for_turn(turn_, options, file_);
    if (written() != before) take_from_store();
    if (stored_ != nullptr) return;
    // Who had the turn has failed, and nobody shall wait for others to fail,
    // too; one that was killed need not fail again.
    if (waited && !turn_.was_left()) turn_.give_back();
  }
  check_store_dir(options);
}

/// Of a process that had sealed the store, and was then killed.
void TablePreparation::remove_what_is_left() const {
  ScanParts(real_files(), ScanParts::folder_of(file_.path), {}).remove();
  if (!turn_.held()) FileLock().try_take(lock_of(file_));  // its end removes it
}

std::vector<Json> TablePreparation::known_statistics() const {
  if (stored_ != nullptr) return stored_->facts().fitted->statistics;
  std::vector<Json> known;
  const TableDatasetOptions& options = origin_->options;
  if (!options.statistics) return known;
  Spec saved(*options.statistics, "statistics");
  for (const Field& field : options.fields) {
    const Json* found = saved.raw(field.name);
    known.push_back(found == nullptr ? Json() : *found);
  }
  saved.finish();
  return known;
}

FitRows TablePreparation::fit_rows() const {
  PENSTOCK_ASSERT(scanned_ != nullptr, "rows are scanned to be fitted over");
  return {origin_->bound, scanned_->pass.notes, scanned_->rows, share_out_};
}

/// Where memory decided that rows go to a store, others may have come to write
/// the same.
bool TablePreparation::written_by_others(const Placer& placer) {
  const TableDatasetOptions& options = origin_->options;
  if (options.remake || placer.plan().tier != Tier::disk || turn_.held() ||
      !file_.why_not.empty() || !wait_for_turn(turn_, options, file_))
    return false;
  take_from_store();
  return stored_ != nullptr;
}

std::shared_ptr<const TableDataset> TablePreparation::pack(
    const TierBudgets& budgets) {
  TableDatasetOptions asked = origin_->options;
  asked.budgets = budgets;
  ScannedTable& scanned = *scanned_;
  std::optional<BusyScope> busy(meter_);
  Placer placer(
      asked, measured(*origin_, scanned), device_, file_.path,
      scanned.begun == nullptr ? 0 : scanned.begun->lengths()->bytes());
  PlacedRows rows;
  if (!asked.plan_only) {
    if (written_by_others(placer)) return stored_;
    rows = packed_rows(*origin_, scanned, file_, placer, device_, share_out_);
    if (scanned.parts) scanned.parts->remove();
    meter_.add_items(placer.measured().rows,
                     static_cast<std::int64_t>(
                         rows.table == nullptr ? 0 : rows.table->bytes()));
    busy.reset();
    scanned.found.scan.stages = std::move(scanned.pass.stages);
    scanned.found.scan.stages.push_back(meter_.numbers());
  }
  return std::shared_ptr<const TableDataset>(new TableDataset(
      origin_, std::make_shared<const FoundRows>(std::move(scanned.found)),
      std::move(rows), placer.measured(), placer.placement()));
}

std::shared_ptr<const TableDataset> TablePreparation::finish(
    std::vector<Json> statistics, const TierBudgets& budgets) {
  std::shared_ptr<const TableDataset> rows = stored_;
  if (rows == nullptr) {
    scanned_->found.statistics = std::move(statistics);
    rows = pack(budgets);
    scanned_.reset();
  }
  if (!rows->fingerprint().empty())  // it is planned only
    check_fingerprint(*rows, origin_->options.source.fingerprint,
                      origin_->source->shown());
  return rows;
}

std::shared_ptr<const TableDataset> TableDataset::prepare(
    const TableDatasetOptions& options, Device& device) {
  return prepare(options, open_source(options.source, requests_of(options)),
                 device);
}

std::shared_ptr<const TableDataset> TableDataset::prepare(
    const TableDatasetOptions& options, std::shared_ptr<Source> source,
    Device& device) {
  return prepare(options, bound_source(options.fields, std::move(source)),
                 device);
}

std::shared_ptr<const TableDataset> TableDataset::prepare(
    const TableDatasetOptions& options, BoundSource source, Device& device) {
  TablePreparation rows(options, std::move(source), device);
  std::vector<Json> statistics = rows.known_statistics();
  if (statistics.empty()) statistics = fit_fields(rows.fit_rows());
  return rows.finish(std::move(statistics), options.budgets);
}

std::shared_ptr<const TableDataset> TableDataset::of_store(
    const TableDatasetOptions& options, BoundSource source, Device& device) {
  TablePreparation rows(TablePreparation::Begun(), options, std::move(source),
                        device);
  rows.take_from_store();
  return rows.stored_ == nullptr ? nullptr : rows.finish({}, options.budgets);
}

}  // namespace penstock
