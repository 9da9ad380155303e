#include "penstock/dataset/indexed/indexed_dataset.h"

#include <algorithm>
#include <tuple>

#include "penstock/dataset/table/preparation_plan.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

/// By field: what an earlier scan found, or what a field has that is not
/// fitted.
std::vector<Json> statistics_for(const IndexedOptions& options,
                                 const BoundFields& bound) {
  std::vector<Json> all = unfitted_statistics(bound);
  for (std::size_t f = 0; options.statistics && f < all.size(); ++f)
    if (const Json* found = options.statistics->find(options.fields[f].name))
      all[f] = *found;
  return all;
}

}  // namespace

std::string IndexedDataset::needs_scan(const IndexedOptions& options,
                                       const BoundSource& source) {
  return why_not_by_position(options.fields, options.split,
                             options.statistics.has_value(), source);
}

IndexedDataset::IndexedDataset(IndexedOptions options,
                               std::unique_ptr<Source> source)
    : IndexedDataset(options, bound_source(options.fields, std::move(source))) {
}

IndexedDataset::IndexedDataset(IndexedOptions options, BoundSource source)
    : options_(std::move(options)),
      source_(source.source),
      bound_(source.fields),
      layout_(layout_of(options_.fields)) {
  std::string why = needs_scan(options_, source);
  if (!why.empty())
    throw Error(
        ErrorKind::request,
        {.code = "data.needs_scan",
         .what = "cannot use these samples without a scan",
         .where = source_->shown(),
         .why = std::move(why),
         .next = "prepare a TableDataset, which scans the samples once"});
  facts_.rows = *source_->count().rows;
  facts_.outputs = outputs_of(options_.fields);
  facts_.most_readers = most_readers(*source_);
  if (const ChunkMap* map = source_->chunks();
      map != nullptr && map->decoded_bytes > 0) {
    facts_.chunks = std::ssize(map->ends);
    facts_.decoded_bytes = map->decoded_bytes;
    facts_.kept_bytes = map->kept_bytes;
  }
  facts_.device_fields =
      device_fields(options_.fields, options_.finish_on, Runs::unknown);
  plan_readers();
  facts_.plan.notes = finish_notes(options_.fields, facts_.device_fields,
                                   options_.finish_on, Runs::unknown);
  if (options_.preparation != nullptr)
    facts_.preparations = {options_.preparation};
  const auto fitted = std::make_shared<const FittedFields>(
      FittedFields{.fields = options_.fields,
                   .statistics = statistics_for(options_, bound_),
                   .columns = columns_of(options_.fields, source_->schema())});
  facts_.fitted = fitted;
  sides_ = sides_by_position(options_.split, *source_, facts_.rows);
  facts_.on_side = sides_.sizes();
  find_lengths();
  fingerprint_ = named_fingerprint(options_.fields, options_.split,
                                   fitted->statistics, *source_, false);
}

/// Nothing is kept but what readers need.
void IndexedDataset::plan_readers() {
  const ChunkMap* map = source_->chunks();
  const std::size_t reader = map == nullptr ? 0 : map->reader.by_position;
  std::string why = "samples are read by position";
  if (reader > 0) why += "; each reader holds " + shown_bytes(reader);
  facts_.plan.tier = Tier::none;
  facts_.plan.lines.push_back({.tier = Tier::none,
                               .host_bytes = reader,
                               .fits = true,
                               .chosen = true,
                               .why = std::move(why)});
}

void IndexedDataset::keep_beside(const TableDatasetOptions& options) {
  PENSTOCK_ASSERT(options.open != nullptr, "the source is opened again");
  TableDatasetOptions all = options;
  all.cache = "ram";
  all.fingerprint = fingerprint_;
  if (Json known = statistics(); known.is_object())
    all.statistics = std::move(known);
  // What would be read ahead is in memory.
  facts_.most_readers = 0;
  facts_.plan.notes.push_back(
      "the first batches are read directly from the files while all samples "
      "are packed in memory");
  scan_ = std::make_unique<BackgroundScan>(std::move(all),
                                           BackgroundScan::Begins::when_told);
}

SideIndexes sides_by_position(const Split& split, const Source& source,
                              std::int64_t rows) {
  if (split.whole()) return index_sides(split, rows, {});
  RowNames names(source.facts().parts);
  std::vector<std::byte> sides;
  sides.reserve(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row)
    sides.push_back(static_cast<std::byte>(side_of(split, names.of(row))));
  keep_most(split, sides);
  return index_sides(split, rows, sides);
}

void IndexedDataset::find_lengths() {
  for (std::size_t f = 0; f < options_.fields.size(); ++f) {
    const FieldKind& kind = *options_.fields[f].kind;
    const std::vector<Output>& outputs = kind.facts().outputs;
    if (std::ranges::none_of(outputs, &Output::own_lengths)) continue;
    std::vector<std::int32_t> lengths(static_cast<std::size_t>(facts_.rows));
    known_lengths(options_.fields, kind, *source_, lengths);
    for (std::int32_t& length : lengths)
      length = static_cast<std::int32_t>(length / kind.facts().column_elements);
    for (const Output& output : outputs) {
      if (!output.own_lengths()) continue;
      varying_.push_back(f);
      facts_.longest.push_back(
          lengths.empty() ? 0 : *std::ranges::max_element(lengths));
      lengths_.push_back(lengths);
    }
  }
}

void IndexedDataset::select(Side side, std::span<SampleId> ranks) const {
  sides_.on(side).select(ranks);
}

void IndexedDataset::lengths(std::size_t varying,
                             std::span<const SampleRange> ranges,
                             std::span<std::int32_t> out) const {
  const std::vector<std::int32_t>& lengths = lengths_[varying];
  for (std::size_t i = 0; i < ranges.size(); ++i)
    out[i] =
        ranges[i].sample < 0
            ? 0
            : elements_in(ranges[i],
                          lengths[static_cast<std::size_t>(ranges[i].sample)]);
}

std::unique_ptr<ReadAhead> IndexedDataset::open_read_ahead(
    ReadAhead::Options options) const {
  auto all =
      std::make_unique<SourceReadAhead>(*source_, nullptr, std::move(options));
  if (larger_ == nullptr) return all;
  return reading_others(std::move(all), *larger_);
}

}  // namespace penstock
