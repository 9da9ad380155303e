#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/held_memory.h"
#include "penstock/dataset/indexed_dataset.h"
#include "penstock/dataset/larger_form.h"
#include "penstock/dataset/table_options.h"

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

std::size_t held_by_batches() {
  for (const HeldMemory& held : held_memory())
    if (held.owner == HeldFor::batches && held.place == HeldIn::host)
      return held.bytes;
  return 0;
}

/// What a thread holds that finishes the largest of the rows, beside the batch.
std::size_t finishing_bytes(const Field& field, const BoundField& bound,
                            const FieldKind& larger, const GoodRows& good) {
  const ValueRow row = *std::ranges::max_element(
      good.rows, {}, [&](ValueRow one) { return larger.stored_run(one); });
  Values runs;
  Faults faults;
  bound.encoder(Json(), field.name)
      ->encode(std::span(&row, 1), {.runs = &runs}, faults);
  const std::vector<Output> outputs = field.kind->outputs();
  std::vector<Bytes> made(outputs.size());
  std::vector<TensorPlace> places;
  for (std::size_t at = 0; at < outputs.size(); ++at) {
    made[at].resize(outputs[at].bytes());
    places.push_back({.data = made[at].mutable_data<std::byte>(),
                      .bytes = outputs[at].bytes()});
  }
  const StoredRow stored{.run = runs.row(0)};
  const std::size_t before = held_by_batches();
  const std::unique_ptr<FieldFinisher> finisher = field.kind->finisher(false);
  finisher->finish(std::span(&stored, 1), {}, places);
  // Other loaders of the process may give some back meanwhile.
  const std::size_t after = held_by_batches();
  return after > before ? after - before : 0;
}

std::string shown_fit(const TierPlan& plan) {
  for (const TierPlan::Line& line : plan.lines) {
    if (line.tier != Tier::ram) continue;
    if (line.fits) return "which fits in memory (\"cache\": \"ram\")";
    if (line.most_rows)
      return "of which memory has room for " + std::to_string(*line.most_rows) +
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
  };
  std::int64_t rows = 0;
  std::size_t run_bytes = 0;  ///< of all rows
  std::vector<Larger> larger = {};
  /// What a thread holds that finishes the largest of them.
  std::size_t finishing = 0;
};

IndexedDataset::Sampled IndexedDataset::sample() const {
  Sampled sampled;
  Block block;
  for (std::size_t f = 0; f < bound_.size(); ++f) {
    const Field& field = options_.fields[f];
    if (field.kind->stored().element_bytes == 0) continue;
    const std::vector<std::int64_t> positions = spread(info_.rows);
    if (block.rows == 0)
      open_checked_reader(*source_)->read(ReadRequest(positions), block);
    GoodRows good;
    parse_good(field, *bound_[f], block, good);
    if (good.rows.empty()) continue;
    sampled.rows = std::ssize(good.rows);
    auto all = [&](const FieldKind& kind) {
      return of_all(good.run_bytes(kind), sampled.rows, info_.rows);
    };
    sampled.run_bytes += all(*field.kind);
    std::optional<LargerForm> larger = larger_form(field);
    if (!larger) continue;
    sampled.finishing =
        std::max(sampled.finishing,
                 finishing_bytes(field, *bound_[f], *larger->field.kind, good));
    std::vector<Field> fields = options_.fields;
    fields[f] = larger->field;
    sampled.larger.push_back(
        {.form = *larger,
         .bytes = all(*field.kind),
         .larger_bytes = all(*larger->field.kind),
         .encoding_ms =
             encoding_ms(*bind_fields(fields, *source_)[f], good, field.name)});
  }
  return sampled;
}

void IndexedDataset::predict_plan(const TableDatasetOptions& options,
                                  const Device& device) try {
  const bool runs_differ =
      std::ranges::any_of(options_.fields, [](const Field& field) {
        return field.kind->stored().element_bytes > 0;
      });
  // A row of a chunk costs as much as the whole chunk.
  if (info_.rows == 0 || (runs_differ && source_->chunks() != nullptr)) return;
  const Sampled sampled = sample();
  const TierLimits limits = tier_limits(read_host_limits(), device);
  const std::size_t finishing =
      sampled.finishing *
      static_cast<std::size_t>(std::max(1, options.workers));
  TierLimits left = limits;
  if (left.ram_free) *left.ram_free -= std::min(*left.ram_free, finishing);
  auto planned = [&](std::size_t run_bytes) {
    return plan_tiers(
        {.rows = info_.rows,
         .row_bytes = layout_.row_bytes,
         .run_bytes = run_bytes,
         .finished_on_host =
             (options.batches_on_host && options.batches_on_host(device)) ||
             !finished_on_device(options_.fields, info_.device_fields),
         .tier = "none"},
        left);
  };
  TierPlan plan = planned(sampled.run_bytes);
  const TierPlan::Line by_position = info_.plan.lines.back();
  std::erase_if(plan.lines, [](const TierPlan::Line& line) {
    return line.tier == Tier::none;
  });
  plan.lines.push_back(by_position);
  plan.limits = limits;
  for (TierPlan::Line& line : plan.lines) line.host_bytes += finishing;
  plan.predicted_from = sampled.rows;
  plan.notes = info_.plan.notes;
  if (finishing > 0)
    plan.notes.push_back(
        shown_bytes(finishing) + " of the host are for " +
        std::to_string(std::max(1, options.workers)) +
        " threads that finish rows as large as the largest of these");
  for (const Sampled::Larger& of : sampled.larger) {
    char ms[32];
    std::snprintf(ms, sizeof(ms), "%.2f", of.encoding_ms);
    plan.notes.push_back(
        "field '" + of.form.field.name + "' with " + of.form.setting +
        " keeps " + shown_bytes(of.larger_bytes) + " in place of " +
        shown_bytes(of.bytes) + ", " +
        shown_fit(planned(sampled.run_bytes - of.bytes + of.larger_bytes)) +
        ". Making that of a row takes " + ms +
        " ms of a processor, once in place of in every epoch");
  }
  info_.plan = std::move(plan);
} catch (const Error& error) {
  // Who reads the rows hears of it.
  log(LogLevel::info,
      std::string("what the rows would take is not known: ") + error.what());
}

}  // namespace penstock
