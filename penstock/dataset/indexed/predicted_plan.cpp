#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "penstock/dataset/indexed/indexed_dataset.h"
#include "penstock/dataset/rank_limits.h"
#include "penstock/dataset/table/larger_form.h"
#include "penstock/dataset/table/larger_plan.h"
#include "penstock/dataset/table/table_options.h"

// What the rows of a data set that is read by position would take in a tier is
// reckoned from a few of them, as evenly spread as can be: to say so before a
// scan has read them all; and what a form would take, and spare, that keeps
// more of each row.

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
  /// What a field keeps of all rows in a larger form, beside `bytes`.
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
  std::int64_t rows = 0;
  std::size_t run_bytes = 0;   ///< of all rows
  std::size_t read_bytes = 0;  ///< of their parsed values
  std::vector<Larger> larger = {};
  std::vector<std::string> in_larger = {};  ///< fields that have that form
  /// What a thread holds that finishes the largest of them.
  std::size_t finishing = 0;

  /// Runs of all rows in the larger form, where that makes the same bytes.
  std::size_t larger_bytes() const {
    std::size_t bytes = run_bytes;
    for (const Larger& of : larger)
      if (of.form.same_bytes) bytes += of.larger_bytes - of.bytes;
    return bytes;
  }
  /// What is worth keeping; empty: nothing.
  std::string shown_kept() const {
    std::string all;
    auto add = [&](const std::string& text) {
      all += (all.empty() ? "" : ", ") + text;
    };
    for (const Larger& of : larger)
      if (of.form.same_bytes) add(of.form.shown());
    for (const std::string& name : in_larger) add("field '" + name + "'");
    return all;
  }
  std::size_t finishing_of(int workers) const {
    return finishing * static_cast<std::size_t>(std::max(1, workers));
  }
};

/// `timed`: with the time that making them takes.
IndexedDataset::Sampled IndexedDataset::sample(bool timed) const {
  Sampled sampled;
  Block block;
  for (std::size_t f = 0; f < bound_.size(); ++f) {
    const Field& field = options_.fields[f];
    if (field.kind->facts().stored.element_bytes == 0) continue;
    const std::vector<std::int64_t> positions = spread(facts_.rows);
    if (block.rows == 0)
      open_checked_reader(*source_)->read(ReadRequest(positions), block);
    GoodRows good;
    parse_good(field, *bound_[f], block, good);
    if (good.rows.empty()) continue;
    sampled.rows = std::ssize(good.rows);
    auto all = [&](const FieldKind& kind) {
      return of_all(good.run_bytes(kind), sampled.rows, facts_.rows);
    };
    sampled.run_bytes += all(*field.kind);
    sampled.read_bytes += of_all(good.value_bytes(), sampled.rows, facts_.rows);
    if (field.kind->facts().is_larger) sampled.in_larger.push_back(field.name);
    std::optional<LargerForm> larger = larger_form(field);
    if (!larger) continue;
    sampled.finishing =
        std::max(sampled.finishing,
                 finishing_bytes(largest_run(*larger->field.kind, good)));
    std::vector<Field> fields = options_.fields;
    fields[f] = larger->field;
    sampled.larger.push_back(
        {.form = *larger,
         .bytes = all(*field.kind),
         .larger_bytes = all(*larger->field.kind),
         .encoding_ms = timed ? encoding_ms(*bind_fields(fields, *source_)[f],
                                            good, field.name)
                              : 0});
  }
  return sampled;
}

/// Of all rows, whose runs have so many bytes.
TierPlan IndexedDataset::plan_of(const TableDatasetOptions& options,
                                 const Device& device, const Sampled& sampled,
                                 std::size_t run_bytes) const {
  return plan_tiers(
      {.rows = facts_.rows,
       .row_bytes = layout_.row_bytes,
       .run_bytes = run_bytes,
       .finished_on_host =
           options.batches_on_host ||
           !finished_on_device(options_.fields, facts_.device_fields),
       .finishing_bytes = sampled.finishing_of(options.workers),
       .tier = "none"},
      tier_limits(rank_limits(options.cache, options), device));
}

void IndexedDataset::decide_larger(const TableDatasetOptions& options,
                                   const Sampled& sampled,
                                   const TierLimits& limits) {
  const std::string shown = sampled.shown_kept();
  if (shown.empty() || !varying_.empty() || options.cache != "auto") return;
  const LargerPlan plan = plan_larger(
      {.shown = shown,
       .rows = facts_.rows,
       .bytes = static_cast<std::size_t>(facts_.rows) * layout_.row_bytes +
                sampled.larger_bytes(),
       .others = sampled.finishing_of(options.workers),
       .read_again = sampled.read_bytes,
       .sharing = ranks_sharing(options.cache, options)},
      options, limits);
  if (!plan.note.empty()) facts_.plan.notes.push_back(plan.note);
  if (!plan.keeping) return;
  LargerRows::Making making{.fields = options_.fields};
  for (std::size_t f = 0; f < making.fields.size(); ++f)
    for (const Sampled::Larger& of : sampled.larger)
      if (of.form.same_bytes && of.form.field.name == making.fields[f].name) {
        making.fields[f] = of.form.field;
        making.larger.push_back(f);
      }
  making.bound = bind_fields(making.fields, *source_);
  making.statistics = facts_.fitted->statistics;
  larger_ = std::make_unique<LargerRows>(facts_.rows, std::move(making),
                                         *plan.keeping);
  facts_.plan.lines.back().host_bytes += plan.bytes;
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
  decide_larger(options, sample(false),
                tier_limits(rank_limits(options.cache, options), device));
} catch (const Error& error) {
  // Who reads the rows hears of it.
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
  const std::size_t finishing = sampled.finishing_of(options.workers);
  auto planned = [&](std::size_t run_bytes) {
    return plan_of(options, device, sampled, run_bytes);
  };
  TierPlan plan = planned(sampled.run_bytes);
  TierPlan::Line by_position = facts_.plan.lines.back();
  by_position.host_bytes += finishing;
  std::erase_if(plan.lines, [](const TierPlan::Line& line) {
    return line.tier == Tier::none;
  });
  plan.lines.push_back(by_position);
  plan.predicted_from = sampled.rows;
  plan.notes = facts_.plan.notes;
  if (const std::string note = rank_note(options); !note.empty())
    plan.notes.push_back(note);
  if (finishing > 0)
    plan.notes.push_back(
        finishing_note(finishing, std::max(1, options.workers)));
  facts_.plan = std::move(plan);
  decide_larger(options, sampled, facts_.plan.limits);
  for (const Sampled::Larger& of : sampled.larger)
    if (larger_ == nullptr || !of.form.same_bytes)
      facts_.plan.notes.push_back(
          of.text(planned(sampled.run_bytes - of.bytes + of.larger_bytes)));
} catch (const Error& error) {
  // Who reads the rows hears of it.
  log(LogLevel::info,
      std::string("the size of the rows is unknown: ") + error.what());
}

}  // namespace penstock
