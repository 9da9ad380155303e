#include <algorithm>

#include "penstock/dataset/indexed_dataset.h"
#include "penstock/dataset/table_options.h"

// What the rows of a data set that is read by position would take in a tier is
// reckoned from a few of them, as evenly spread as can be: to say so before a
// scan has read them all.

namespace penstock {
namespace {

constexpr std::int64_t kSampled = 128;

std::vector<std::int64_t> spread(std::int64_t rows) {
  std::vector<std::int64_t> positions;
  const std::int64_t count = std::min(rows, kSampled);
  for (std::int64_t i = 0; i < count; ++i)
    positions.push_back(i * rows / count);
  return positions;
}

/// The bytes of the stored runs of the rows of a block, and of how many rows:
/// bad ones do not count.
struct Measured {
  std::int64_t rows = 0;
  std::size_t bytes = 0;
};
Measured measure(const FieldKind& kind, const BoundField& bound,
                 const Block& block) {
  Measured measured;
  Values values;
  Faults faults;
  bound.parser()->parse(block, values, faults);
  for (std::int64_t row = 0; row < block.rows; ++row) {
    if (std::ranges::find(faults.rows, row, &RowFault::row) !=
        faults.rows.end())
      continue;
    ++measured.rows;
    measured.bytes += kind.stored_run(values.row(row));
  }
  return measured;
}

}  // namespace

std::size_t IndexedDataset::sampled_run_bytes(std::int64_t& sampled) const {
  std::size_t all = 0;
  Block block;
  for (std::size_t f = 0; f < bound_.size(); ++f) {
    const FieldKind& kind = *options_.fields[f].kind;
    if (kind.stored().element_bytes == 0) continue;
    const std::vector<std::int64_t> positions = spread(info_.rows);
    if (block.rows == 0)
      open_checked_reader(*source_)->read(ReadRequest(positions), block);
    const Measured of = measure(kind, *bound_[f], block);
    if (of.rows == 0) continue;
    sampled = of.rows;
    all += static_cast<std::size_t>(static_cast<double>(of.bytes) /
                                    static_cast<double>(of.rows) *
                                    static_cast<double>(info_.rows));
  }
  return all;
}

void IndexedDataset::predict_plan(const TableDatasetOptions& options,
                                  const Device& device) try {
  const bool runs_differ =
      std::ranges::any_of(options_.fields, [](const Field& field) {
        return field.kind->stored().element_bytes > 0;
      });
  // A row of a chunk costs as much as the whole chunk.
  if (info_.rows == 0 || (runs_differ && source_->chunks() != nullptr)) return;
  std::int64_t sampled = 0;
  const std::size_t runs = sampled_run_bytes(sampled);
  TierPlan plan = plan_tiers(
      {.rows = info_.rows,
       .row_bytes = layout_.row_bytes,
       .run_bytes = runs,
       .finished_on_host =
           (options.batches_on_host && options.batches_on_host(device)) ||
           !finished_on_device(options_.fields, info_.device_fields),
       .tier = "none"},
      tier_limits(read_host_limits(), device));
  const TierPlan::Line by_position = info_.plan.lines.back();
  std::erase_if(plan.lines, [](const TierPlan::Line& line) {
    return line.tier == Tier::none;
  });
  plan.lines.push_back(by_position);
  plan.predicted_from = sampled;
  plan.notes = info_.plan.notes;
  info_.plan = std::move(plan);
} catch (const Error& error) {
  // Who reads the rows hears of it.
  log(LogLevel::info,
      std::string("what the rows would take is not known: ") + error.what());
}

}  // namespace penstock
