#include "penstock/dataset/table/table_preparation.h"

#include <algorithm>
#include <utility>

#include "penstock/dataset/indexed/expected_rows.h"
#include "penstock/dataset/indexed/no_rows.h"
#include "penstock/dataset/row_place.h"
#include "penstock/dataset/table/key_order.h"

namespace penstock {
namespace {

/// `by_position`: such rows that have names are files, without columns to
/// compare.
[[noreturn]] void refuse_bad_rows(const ScanFacts& scan,
                                  const std::string& source, bool by_position) {
  const std::vector<BadRow>& bad = scan.quarantine;
  std::string first;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, bad.size()); ++i) {
    const BadRow& row = bad[i];
    first += (i == 0 ? "" : "; ") + std::string("row ") + row.shown_key +
             ", column '" + row.column + "'";
    if (row.byte >= 0) first += ", byte " + std::to_string(row.byte);
    first += ": " + row.why;
  }
  throw Error(
      ErrorKind::transform,
      {.code = "data.bad_rows",
       .what = std::to_string(scan.bad_rows) +
               (scan.bad_rows == 1 ? " row is" : " rows are") + " not usable",
       .where = source,
       .why = first,
       .next = std::string("correct the rows, ") +
               (bad.front().key.is_string() && by_position
                    ? ""
                    : "leave them out with 'source.where', ") +
               "or set \"source.on_bad\": \"skip\" to leave out and list all "
               "such rows"});
}

[[noreturn]] void refuse_no_key(const std::string& source) {
  throw Error(ErrorKind::request,
              {.code = "source.no_key",
               .what = "cannot identify the rows of " + source,
               .where = "source",
               .why = "the rows have neither keys nor positions",
               .next = "name a column whose values are unique as source.key"});
}

/// Those of all fields, each once.
std::vector<NamedFile> named_files_in(const ParseNotes& notes) {
  std::vector<NamedFile> all;
  for (const std::unique_ptr<FieldNotes>& field : notes.fields) {
    if (field == nullptr) continue;
    const std::span<const NamedFile> files = field->files();
    all.insert(all.end(), files.begin(), files.end());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace

TablePreparation::TablePreparation(const TableDatasetOptions& options,
                                   BoundSource source, Device& device)
    : set_(new TableDataset(options)),
      shown_(source.source->shown()),
      device_(device),
      meter_("store", std::max(1, options.workers)),
      share_out_([this](std::int64_t count, const RangeWork& work) {
        in_ranges(set_->options_.workers, count,
                  [&](std::int64_t begin, std::int64_t end) {
                    std::optional<BusyScope> busy;  // the first range is this
                    if (begin > 0) busy.emplace(meter_);  // thread's
                    work(begin, end);
                  });
      }) {
  TableDataset& set = *set_;
  const Abilities& abilities = source.source->abilities();
  if (!abilities.by_key && !abilities.by_position) refuse_no_key(shown_);
  set.begin(std::move(source));
  if (options.anew)
    set.store_file_ =
        table_store(options, *set.source_, options.statistics.has_value());
  else
    in_store_ = set.take_from_store(device) || set.take_in_turn(turn_, device);
  if (!in_store_)
    scan();
  else if (options.resumable)
    remove_what_is_left();
}

TablePreparation::~TablePreparation() = default;

/// Of a process that had sealed the store, and was then killed.
void TablePreparation::remove_what_is_left() const {
  const TableStore& store = set_->store_file_;
  ScanParts(real_files(), ScanParts::folder_of(store.path), {}).remove();
  if (!turn_.held()) FileLock().try_take(lock_of(store));  // its end removes it
}

AskedScan TablePreparation::asked() const {
  const TableDataset& set = *set_;
  AskedScan asked = asked_scan(set.options_, *set.source_);
  asked.keeps_values = !set.needs_no_values();
  asked.store_usable =
      set.store_file_.why_not.empty() && !set.store_file_.path.empty();
  asked.runs_to_disk = set.options_.cache == "disk" && set.runs_alone() &&
                       set.bound_[0]->unfitted();
  return asked;
}

/// The runs of rows in the order of the source, whatever is found of them.
void TablePreparation::begin_store() {
  TableDataset& set = *set_;
  const std::vector<Field>& fields = set.options_.fields;
  set.begun_ = std::make_unique<StoreOfScan>(
      real_files(), set.store_file_.path,
      RowEncoder(set.bound_, fields, set.layout_, {*set.bound_[0]->unfitted()},
                 set.source_.get()),
      fields[0].kind->facts().stored.element_bytes);
}

void TablePreparation::scan() {
  TableDataset& set = *set_;
  const TableDatasetOptions& options = set.options_;
  const AskedScan asked = this->asked();
  const ScanPlan plan = decide_scan(asked, read_host_limits());
  spill_.emplace(real_files(), store_dir(options), shown_);
  set.announce_scan(plan.limit, *spill_);
  BlockParser::Options parsing = set.parsing_;
  parsing.keeps_values = asked.keeps_values;
  if (plan.in_parts)
    parts_.emplace(real_files(), ScanParts::folder_of(set.store_file_.path),
                   parsing.fields);
  parsing.lends_values = parts_.has_value();  // they are written at once
  if (plan.into_store) begin_store();
  pass_ = scan_table(*set.source_, parsing, options, plan.limit, *spill_,
                     parts_ ? &*parts_ : nullptr, set.begun_.get());
  ScanFacts& found = *set.scan_;
  found.too_short = pass_.notes.too_short;
  found.bad_rows = pass_.notes.bad_rows;
  found.quarantine = std::move(pass_.notes.bad);
  add_places(*set.source_, found.quarantine);
  set.named_files_ = named_files_in(pass_.notes);
  if (found.bad_rows > 0 && !options.source.skip_bad)
    refuse_bad_rows(found, shown_, set.source_->abilities().by_position);
  BusyScope busy(meter_);
  rows_.emplace(RowsById{pass_.blocks,
                         rows_by_key(pass_.blocks, shown_, options.workers)});
  refuse_left_out_twice(pass_.notes.left_out, pass_.blocks, shown_);
  // Rows by position keep their ids, which are their positions.
  keep_most(options.split, !set.source_->abilities().by_key, *rows_);
  if (rows_->refs.empty())
    refuse_no_rows(shown_, found.too_short, found.bad_rows);
  if (options.drawing)
    set.facts_.draws = draws_of(options.drawing, draws_in(*rows_));
  set.split(rows_->count(),
            set.one_side() ? std::vector<std::byte>() : sides_of(*rows_));
}

std::vector<Json> TablePreparation::known_statistics() const {
  if (in_store_) return set_->fitted_->statistics;
  std::vector<Json> known;
  const TableDatasetOptions& options = set_->options_;
  if (!options.statistics) return known;
  Spec saved(*options.statistics, "statistics");
  for (const Field& field : options.fields) {
    const Json* found = saved.raw(field.name);
    known.push_back(found == nullptr ? Json() : *found);
  }
  saved.finish();
  return known;
}

FitRows TablePreparation::fit_rows() {
  PENSTOCK_ASSERT(rows_.has_value(), "rows are scanned to be fitted over");
  return {set_->bound_, pass_.notes, *rows_, share_out_};
}

std::shared_ptr<const TableDataset> TablePreparation::finish(
    std::vector<Json> statistics, const TierBudgets& budgets) {
  TableDataset& set = *set_;
  const TableDatasetOptions& options = set.options_;
  if (!in_store_) {
    set.options_.budgets = budgets;
    BusyScope busy(meter_);
    set.fitted_->statistics = std::move(statistics);
    set.measure_runs(*rows_);
    set.plan_tier(rows_->count(), device_, pass_.memory);
    if (options.plan_only) return set_;
    // Where memory decided it, others may have come to write the same store.
    const bool written = !options.anew && set.plan().tier == Tier::disk &&
                         !turn_.held() && set.store_file_.why_not.empty() &&
                         wait_for_turn(turn_, options, set.store_file_) &&
                         set.take_from_store(device_);
    if (!written) set.pack(*rows_, device_, share_out_);
    set.begun_.reset();
    if (parts_) parts_->remove();
    meter_.add_items(rows_->count(), static_cast<std::int64_t>(
                                         set.table_ ? set.table_->bytes() : 0));
  }
  check_fingerprint(set, options.source.fingerprint, shown_);
  if (in_store_) return set_;
  set.scan_->stages = std::move(pass_.stages);
  set.scan_->stages.push_back(meter_.numbers());
  return set_;
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

}  // namespace penstock
