#include "penstock/dataset/growing/growing_dataset.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "penstock/base/host_limits.h"
#include "penstock/dataset/indexed/indexed_dataset.h"
#include "penstock/dataset/table/preparation_plan.h"

// A sample is prepared (read, parsed, encoded) when the plan of its batch first
// asks how long it is, and what was made is kept in `recent_` until the batch
// is filled a moment later; what has left it by then is made once more.
// Meanwhile a scan beside the batches writes a store of all rows. Once it is
// complete every question goes there, and what was prepared is forgotten.
//
// A length is written once and never changes: it is that of the stored form,
// which the store has too. So batches do not depend on when the store is
// complete. `mutex_` guards the lengths, `recent_` and the idle readers;
// nothing is read or parsed under it. Two threads may prepare the same sample,
// and both get the same.

namespace penstock {
namespace {

/// A bad sample has a place of its own, where its turn is told.
constexpr std::int32_t kBadLength = 1;
/// Samples that are read together, and those for which threads are worth while.
constexpr std::size_t kAtOnce = 256, kManySamples = 64;
constexpr std::size_t kMostRecent = std::size_t{256} << 20;

/// At most a sixteenth of the memory that is free.
std::size_t recent_bytes() {
  const auto free = read_host_limits().memory_free;
  return free ? std::min(kMostRecent, *free / 16) : kMostRecent;
}

}  // namespace

GrowingDataset::GrowingDataset(const TableDatasetOptions& options,
                               BoundSource source)
    : options_(options),
      source_(std::move(source.source)),
      most_readers_(most_readers(*source_)),
      layout_(layout_of(options_.fields)),
      bound_(std::move(source.fields)),
      statistics_(unfitted_statistics(bound_)),
      recent_(recent_bytes()) {
  const std::optional<std::int64_t> rows = source_->count().rows;
  PENSTOCK_ASSERT(rows.has_value(), "rows that grow are counted");
  facts_.rows = *rows;
  facts_.outputs = outputs_of(options_.fields);
  sides_ = sides_by_position(options_.split, *source_, facts_.rows);
  facts_.on_side = sides_.sizes();
  if (options_.preparation != nullptr)
    facts_.preparations = {options_.preparation};
  for (std::size_t f = 0; f < options_.fields.size(); ++f) {
    const FieldKind& kind = *options_.fields[f].kind;
    for (const Output& output : kind.facts().outputs) {
      if (!output.own_lengths()) continue;
      varying_.push_back(f);
      facts_.longest.push_back(output.lengths == Lengths::bins
                                   ? kind.facts().packing->size
                                   : output.most);
    }
  }
  lengths_.assign(
      varying_.size(),
      std::vector<std::int32_t>(static_cast<std::size_t>(facts_.rows), -1));
  facts_.plan.tier = Tier::none;
  facts_.plan.lines.push_back(
      {.tier = Tier::none,
       .fits = true,
       .chosen = true,
       .why = "rows are prepared when a batch needs them"});
  if (!options_.open) {
    auto none = std::make_shared<LaterRows>();
    none->end();
    facts_.later = std::move(none);
    return;
  }
  TableDatasetOptions all = options_;
  all.cache = "disk";  // for the next run, wherever this one's rows shall be
  scan_ = std::make_unique<BackgroundScan>(std::move(all),
                                           BackgroundScan::Begins::at_once);
  facts_.later = scan_->rows();
}

void GrowingDataset::select(Side side, std::span<SampleId> ranks) const {
  sides_.on(side).select(ranks);
}

std::shared_ptr<const Dataset> GrowingDataset::stored() const {
  std::shared_ptr<const Dataset> rows = facts_.later->rows();
  if (rows != nullptr)
    forgotten_.call([this] {
      Lock lock(mutex_);
      recent_.clear();
    });
  return rows;
}

void GrowingDataset::lengths(std::size_t varying,
                             std::span<const SampleRange> ranges,
                             std::span<std::int32_t> out) const {
  if (auto rows = stored()) return rows->lengths(varying, ranges, out);
  std::vector<SampleId> unknown;
  {
    Lock lock(mutex_);
    for (const SampleRange& range : ranges)
      if (range.sample >= 0 && length_of(varying, range.sample) < 0)
        unknown.push_back(range.sample);
  }
  if (!unknown.empty()) prepared(unknown);
  Lock lock(mutex_);
  for (std::size_t i = 0; i < ranges.size(); ++i)
    out[i] = ranges[i].sample < 0
                 ? 0
                 : elements_in(ranges[i], length_of(varying, ranges[i].sample));
}

GrowingDataset::Rows GrowingDataset::prepared(
    std::span<const SampleId> ids) const {
  Rows rows(ids.size());
  std::vector<SampleId> missing;
  {
    Lock lock(mutex_);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0) continue;
      rows[i] = recent_.find(ids[i]);
      if (rows[i] == nullptr) missing.push_back(ids[i]);
    }
  }
  if (missing.empty()) return rows;
  std::ranges::sort(missing);
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  const Rows made = prepare(missing);
  remember(missing, made);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= 0 && rows[i] == nullptr)
      rows[i] = made[static_cast<std::size_t>(
          std::ranges::lower_bound(missing, ids[i]) - missing.begin())];
  return rows;
}

GrowingDataset::Rows GrowingDataset::prepare(
    std::span<const SampleId> ids) const {
  Rows made(ids.size());
  const int threads =
      ids.size() < kManySamples ? 1 : std::min(options_.workers, most_readers_);
  in_ranges(threads, std::ssize(ids),
            [&](std::int64_t begin, std::int64_t end) {
              std::unique_ptr<IndexedRows> by = take_idle();
              if (by == nullptr)
                by = std::make_unique<IndexedRows>(
                    IndexedRows::Origin{.source = *source_,
                                        .bound = bound_,
                                        .fields = options_.fields,
                                        .layout = layout_,
                                        .statistics = statistics_},
                    meters_, false);
              const auto last = static_cast<std::size_t>(end);
              for (auto at = static_cast<std::size_t>(begin); at < last;
                   at += kAtOnce) {
                const std::size_t count = std::min(kAtOnce, last - at);
                prepare(ids.subspan(at, count), *by,
                        std::span(made).subspan(at, count));
              }
              Lock lock(mutex_);
              idle_.push_back(std::move(by));
            });
  return made;
}

void GrowingDataset::prepare(
    std::span<const SampleId> ids, IndexedRows& by,
    std::span<std::shared_ptr<const PreparedRow>> to) const {
  Faults faults;
  by.prepare(ids, nullptr, faults);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (by.ids()[i] < 0) continue;
    auto row = std::make_shared<PreparedRow>();
    if (layout_.row_bytes > 0)
      row->tensors.assign(by.row(i), by.row(i) + layout_.row_bytes);
    for (std::size_t f = 0; f < bound_.size(); ++f) {
      std::vector<std::byte>& run = row->runs.emplace_back();
      if (options_.fields[f].kind->facts().stored.element_bytes == 0) continue;
      const std::span<const std::byte> bytes = by.run(f, i);
      run.assign(bytes.begin(), bytes.end());
    }
    to[i] = std::move(row);
  }
  by.name(ids, faults);
  for (RowFault& fault : faults.rows) {
    const auto at = static_cast<std::size_t>(fault.row);
    auto row = std::make_shared<PreparedRow>();
    row->fault = std::move(fault);
    to[at] = std::move(row);
  }
}

void GrowingDataset::remember(std::span<const SampleId> ids,
                              const Rows& rows) const {
  Lock lock(mutex_);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t v = 0; v < varying_.size(); ++v) {
      const std::size_t f = varying_[v];
      const std::size_t element =
          options_.fields[f].kind->facts().stored.element_bytes;
      lengths_[v][static_cast<std::size_t>(ids[i])] =
          rows[i]->fault
              ? kBadLength
              : static_cast<std::int32_t>(rows[i]->runs[f].size() / element);
    }
    recent_.add(ids[i], rows[i]);
  }
}

std::unique_ptr<IndexedRows> GrowingDataset::take_idle() const {
  Lock lock(mutex_);
  if (idle_.empty()) return nullptr;
  std::unique_ptr<IndexedRows> idle = std::move(idle_.back());
  idle_.pop_back();
  return idle;
}

}  // namespace penstock
