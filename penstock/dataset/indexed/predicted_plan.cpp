#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "penstock/dataset/indexed/indexed_dataset.h"
#include "penstock/dataset/table/larger_form.h"
#include "penstock/dataset/table/placement.h"

// Rows that are read by position are never measured as a whole. A few of them,
// as evenly spread as can be, stand for all: place() decides from these what
// the rows would take in each tier, and whether their larger form is kept.

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

/// Bytes of all rows, of which so many have these.
std::size_t of_all(std::size_t bytes, std::int64_t of, std::int64_t rows) {
  return static_cast<std::size_t>(static_cast<double>(bytes) /
                                  static_cast<double>(of) *
                                  static_cast<double>(rows));
}

/// The rows of a block that a field does not reject, parsed.
struct GoodRows {
  Values values = {};
  std::vector<ValueRow> rows = {};

  std::size_t value_bytes() const {
    std::size_t bytes = 0;
    for (ValueRow row : rows) bytes += row.size();
    return bytes;
  }
  std::size_t run_bytes(const FieldKind& kind) const {
    std::size_t bytes = 0;
    for (ValueRow row : rows) bytes += kind.stored_run(row);
    return bytes;
  }
};

void parse_good(const Field& field, const BoundField& bound, const Block& block,
                GoodRows& good) {
  Faults faults;
  bound.parser()->parse(block, good.values, faults);
  check_runs(good.values, 0, block.rows, field.name);
  for (std::int64_t row = 0; row < block.rows; ++row)
    if (std::ranges::find(faults.rows, row, &RowFault::row) ==
        faults.rows.end())
      good.rows.push_back(good.values.row(row));
}

/// Milliseconds of a processor for each row that is put into this form, of a
/// few of them, one at a time: they may be large.
double encoding_ms(const BoundField& bound, const GoodRows& good,
                   const std::string& field) {
  constexpr std::size_t kTimed = 16;
  const std::size_t count = std::min(kTimed, good.rows.size());
  const std::unique_ptr<FieldEncoder> encoder = bound.encoder(Json(), field);
  Values runs;
  Faults faults;
  auto encode = [&](std::size_t at) {
    runs.clear();
    encoder->encode(std::span(&good.rows[at], 1), {.runs = &runs}, faults);
  };
  encode(0);  // takes memory
  const Nanoseconds before = thread_cpu_time();
  for (std::size_t i = 0; i < count; ++i) encode(i * good.rows.size() / count);
  return std::chrono::duration<double, std::milli>(thread_cpu_time() - before)
             .count() /
         static_cast<double>(count);
}

std::size_t largest_run(const FieldKind& kind, const GoodRows& good) {
  std::size_t bytes = 0;
  for (ValueRow row : good.rows) bytes = std::max(bytes, kind.stored_run(row));
  return bytes;
}

std::string shown_fit(const TierPlan& plan) {
  for (const TierPlan::Line& line : plan.lines) {
    if (line.tier != Tier::ram) continue;
    if (line.fits) return "which fits in memory (\"cache\": \"ram\")";
    if (line.most_rows)
      return "of which memory holds " + std::to_string(*line.most_rows) +
             " rows";
  }
  return "which does not fit in memory";
}

}  // namespace

struct IndexedDataset::Sampled {
  /// What a field keeps of all rows in a larger form, instead of `bytes`.
  struct Larger {
    LargerForm form;
    std::size_t bytes = 0, larger_bytes = 0;
    double encoding_ms = 0;

    /// `plan`: of all rows with it.
    std::string text(const TierPlan& plan) const {
      char ms[32];
      std::snprintf(ms, sizeof(ms), "%.2f", encoding_ms);
      return "field '" + form.field.name + "' with " + form.setting +
             " keeps " + shown_bytes(larger_bytes) + " instead of " +
             shown_bytes(bytes) + ", " + shown_fit(plan) +
             ". Making it for one row takes " + ms +
             " ms of processor time, once instead of in every epoch" +
             (form.same_bytes ? "" : "; the bytes of batches change");
    }
  };
  std::int64_t looked_at = 0;  ///< rows
  MeasuredRows measured;       ///< all of them, if these are like the others
  std::vector<Larger> larger = {};
};

/// `timed`: with the time that making larger forms takes.
IndexedDataset::Sampled IndexedDataset::sample(bool timed) const {
  const auto rows = static_cast<std::size_t>(facts_.rows);
  Sampled sampled{.measured = {.rows = facts_.rows,
                               .on_side = facts_.on_side,
                               .key_bytes = rows * sizeof(SampleId),
                               .read_bytes = 0}};
  MeasuredRows& measured = sampled.measured;
  std::size_t in_larger = rows * layout_.row_bytes;
  bool keeps_larger = false;
  Block block;
  for (std::size_t f = 0; f < bound_.size(); ++f) {
    const Field& field = options_.fields[f];
    const std::size_t element = field.kind->facts().stored.element_bytes;
    if (element == 0) continue;
    const std::vector<std::int64_t> positions = spread(facts_.rows);
    if (block.rows == 0)
      open_checked_reader(*source_)->read(ReadRequest(positions), block);
    GoodRows good;
    parse_good(field, *bound_[f], block, good);
    if (good.rows.empty()) continue;
    sampled.looked_at = std::ssize(good.rows);
    auto all = [&](std::size_t bytes) {
      return of_all(bytes, sampled.looked_at, facts_.rows);
    };
    const std::size_t bytes = all(good.run_bytes(*field.kind));
    measured.run_bytes += bytes;
    *measured.read_bytes += all(good.value_bytes());
    measured.longest.push_back(
        {f,
         static_cast<std::int32_t>(largest_run(*field.kind, good) / element)});
    keeps_larger |= field.kind->facts().is_larger;
    const std::optional<LargerForm> larger = larger_form(field);
    if (!larger) {
      in_larger += bytes;
      continue;
    }
    const FieldKind& kind = *larger->field.kind;
    measured.finishing_bytes = std::max(
        measured.finishing_bytes, finishing_bytes(largest_run(kind, good)));
    const std::size_t larger_bytes = all(good.run_bytes(kind));
    in_larger += larger->same_bytes ? larger_bytes : bytes;
    keeps_larger |= larger->same_bytes;
    std::vector<Field> fields = options_.fields;
    fields[f] = larger->field;
    sampled.larger.push_back(
        {.form = *larger,
         .bytes = bytes,
         .larger_bytes = larger_bytes,
         .encoding_ms = timed ? encoding_ms(*bind_fields(fields, *source_)[f],
                                            good, field.name)
                              : 0});
  }
  if (keeps_larger) measured.larger_bytes = in_larger;
  return sampled;
}

void IndexedDataset::make_larger(const LargerPlan& plan) {
  LargerRows::Making making{.fields = options_.fields};
  for (std::size_t f = 0; f < making.fields.size(); ++f)
    if (const std::optional<LargerForm> form = larger_form(making.fields[f]);
        form && form->same_bytes) {
      making.fields[f] = form->field;
      making.larger.push_back(f);
    }
  making.bound = bind_fields(making.fields, *source_);
  making.statistics = facts_.fitted->statistics;
  larger_ = std::make_unique<LargerRows>(facts_.rows, std::move(making),
                                         *plan.keeping);
}

void IndexedDataset::keep_larger(const TableDatasetOptions& options,
                                 const Device& device) try {
  const bool come_again =
      !options.epochs ||
      LargerRows::pays(*options.epochs, options.ranks, options.first_epoch);
  if (facts_.rows == 0 || !come_again || source_->chunks() != nullptr) return;
  const bool marked =
      std::ranges::any_of(options_.fields, [](const Field& field) {
        const FieldFacts& facts = field.kind->facts();
        return facts.stored.element_bytes > 0 &&
               (facts.is_larger || facts.larger);
      });
  if (!marked) return;
  const MeasuredRows measured = sample(false).measured;
  const LargerPlan larger =
      place(options, measured, room_for(options, measured, device, 0)).larger;
  if (!larger.note.empty()) facts_.plan.notes.push_back(larger.note);
  if (!larger.keeping) return;
  make_larger(larger);
  facts_.plan.lines.back().host_bytes += larger.bytes;
} catch (const Error& error) {
  // The loader reports it if it reads the rows.
  log(LogLevel::info,
      std::string("the size of the rows is unknown: ") + error.what());
}

void IndexedDataset::predict_plan(const TableDatasetOptions& options,
                                  const Device& device) try {
  const bool runs_differ =
      std::ranges::any_of(options_.fields, [](const Field& field) {
        return field.kind->facts().stored.element_bytes > 0;
      });
  // A row of a chunk costs as much as the whole chunk.
  if (facts_.rows == 0 || (runs_differ && source_->chunks() != nullptr)) return;
  const Sampled sampled = sample(true);
  auto placed = [&](std::size_t run_bytes) {
    MeasuredRows measured = sampled.measured;
    measured.run_bytes = run_bytes;
    return place(options, measured, room_for(options, measured, device, 0));
  };
  const std::size_t run_bytes = sampled.measured.run_bytes;
  const Placement placement = placed(run_bytes);
  TierPlan plan = placement.plan;
  const TierPlan::Line readers = facts_.plan.lines.back();
  const auto none =
      std::ranges::find(plan.lines, Tier::none, &TierPlan::Line::tier);
  none->host_bytes += readers.host_bytes;
  none->why = readers.why;
  plan.predicted_from = sampled.looked_at;
  for (const Sampled::Larger& of : sampled.larger)
    if (!placement.larger.keeping || !of.form.same_bytes)
      plan.notes.push_back(
          of.text(placed(run_bytes - of.bytes + of.larger_bytes).plan));
  facts_.plan = std::move(plan);
} catch (const Error& error) {
  // The loader reports it if it reads the rows.
  log(LogLevel::info,
      std::string("the size of the rows is unknown: ") + error.what());
}

}  // namespace penstock
