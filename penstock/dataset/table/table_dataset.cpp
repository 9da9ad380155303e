#include "penstock/dataset/table/table_dataset.h"

#include <algorithm>
#include <utility>

#include "penstock/dataset/table/larger_form.h"

// A table becomes a data set in one scan: read and parse, order by key (a
// sample's id is its rank), split into sides, fit statistics on the train side,
// choose the cache tier, encode and pack. Each step needs the one before it for
// all rows, and only parsing and encoding are spread over threads. Three values
// hold what the steps have found, each of which never changes: ScannedTable,
// PlacedRows, and this data set, which needs no lock.

namespace penstock {

TableDataset::TableDataset(std::shared_ptr<const TableOrigin> origin,
                           std::shared_ptr<const FoundRows> found,
                           PlacedRows placed, const MeasuredRows& measured,
                           Placement placement)
    : origin_(std::move(origin)),
      found_(std::move(found)),
      placed_(std::move(placed)),
      measured_(measured),
      placement_(std::move(placement)) {
  facts_.rows = measured_.rows;
  facts_.on_side = measured_.on_side;
  facts_.outputs = outputs_of(fields());
  facts_.plan = placement_.plan;
  facts_.device_fields = placement_.device_fields;
  if (plan().tier == Tier::none)
    facts_.most_readers = most_readers(*origin_->source);
  if (origin_->options.preparation != nullptr)
    facts_.preparations = {origin_->options.preparation};
  facts_.draws = found_->draws;
  facts_.fitted = std::make_shared<const FittedFields>(
      FittedFields{.fields = fields(),
                   .statistics = found_->statistics,
                   .columns = columns_of(fields(), origin_->source->schema())});
  facts_.scan = {found_, &found_->scan};
  find_lengths();
  if (placement_.larger.keeping && !origin_->options.plan_only)
    larger_ = larger_rows();
}

/// Of rows that are only planned, about how long they are.
void TableDataset::find_lengths() {
  facts_.runs = placed_.runs;
  if (placed_.runs.empty()) {
    facts_.longest = longest_samples(fields(), measured_.longest);
    return;
  }
  std::vector<LongestRun> longest;
  for (std::size_t f = 0; f < placed_.runs.size(); ++f) {
    if (runs(f) != nullptr) longest.push_back({f, runs(f)->longest()});
    for (const Output& output : fields()[f].kind->facts().outputs)
      if (output.own_lengths()) varying_.push_back(f);
  }
  facts_.longest = longest_samples(fields(), longest);
}

std::unique_ptr<LargerRows> TableDataset::larger_rows() const {
  LargerRows::Making making{.fields = fields(),
                            .statistics = found_->statistics};
  for (std::size_t f = 0; f < making.fields.size(); ++f) {
    const std::optional<LargerForm> form = larger_form(making.fields[f]);
    if (!form || !form->same_bytes) continue;
    making.fields[f] = form->field;
    making.larger.push_back(f);
  }
  making.bound = bind_fields(making.fields, *origin_->source);
  return std::make_unique<LargerRows>(facts_.rows, std::move(making),
                                      *placement_.larger.keeping);
}

void TableDataset::remove_damaged(const Error& error) const {
  ErrorParts parts = error.parts();
  if (parts.code != "store.damaged" || placed_.store == nullptr ||
      origin_->source->facts().of_store)
    return;
  std::error_code failed;
  std::filesystem::remove(placed_.store->path(), failed);
  if (failed) return;
  parts.next =
      "start again, which makes a new store from the source; and check the "
      "disk";
  throw Error(error.kind(), std::move(parts));
}

void TableDataset::lengths(std::size_t varying,
                           std::span<const SampleRange> ranges,
                           std::span<std::int32_t> out) const {
  if (varying == varying_.size() + kStoredRows) {
    const SampleId first = plan().first_in(Tier::ram);
    for (std::size_t i = 0; i < ranges.size(); ++i)
      out[i] = ranges[i].sample >= first ? 1 : 0;
    return;
  }
  const bool whole = varying >= varying_.size();
  const RunTable& table =
      *runs(whole ? varying - varying_.size() : varying_[varying]);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    SampleId id = ranges[i].sample;
    out[i] = id < 0  ? 0
             : whole ? table.length(id)
                     : elements_in(ranges[i], table.length(id));
  }
}

std::optional<std::size_t> TableDataset::staged_place(Side side) const {
  const std::vector<DeviceField>& fields = facts_.device_fields_of(side);
  if (fields.empty() || fields.back().field != kStoredRows) return std::nullopt;
  return facts_.outputs.size() + kStagedPlaces * (fields.size() - 1) + 1;
}

void TableDataset::select(Side side, std::span<SampleId> ranks) const {
  this->side(side).select(ranks);
}

std::unique_ptr<ReadAhead> TableDataset::open_read_ahead(
    ReadAhead::Options options) const {
  if (plan().tier != Tier::none) return nullptr;
  options.first = plan().first_in(Tier::none);
  return std::make_unique<SourceReadAhead>(*origin_->source, &keys(),
                                           std::move(options));
}

}  // namespace penstock
