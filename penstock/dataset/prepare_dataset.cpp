#include "penstock/dataset/prepare_dataset.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "penstock/base/host_limits.h"
#include "penstock/dataset/device_fields.h"
#include "penstock/dataset/expected_rows.h"
#include "penstock/dataset/growing_dataset.h"
#include "penstock/dataset/no_rows.h"
#include "penstock/dataset/packed_dataset.h"

namespace penstock {

namespace {

/// What a scan must find out, wherever the rows are kept; empty: nothing.
std::string data_reason(const TableDatasetOptions& options,
                        const Source& source) {
  if (source.abilities().by_key) return "samples are numbered by their keys";
  if (options.source.skip_bad) return "bad rows are left out beforehand";
  if (options.drawing) return "rows are drawn by a column";
  std::string why = IndexedDataset::needs_scan(
      {.fields = options.fields, .split = options.split}, source);
  if (!why.empty()) return why;
  BoundFields bound = bind_fields(options.fields, source);
  for (std::size_t f = 0; f < bound.size(); ++f)
    if (bound[f]->may_leave_out())
      return "field '" + options.fields[f].name + "' may leave rows out";
  return {};
}

/// Rows that are decoded in chunks: one of them costs what its whole chunk
/// does.
bool comes_in_chunks(const Source& source) {
  return source.chunks() != nullptr && source.chunks()->chunk_ns > 0;
}

bool packs_a_stream(const TableDatasetOptions& options) {
  return std::ranges::any_of(options.fields, [](const Field& field) {
    const std::optional<Packing>& packing = field.kind->facts().packing;
    return packing && packing->how == Packing::How::stream;
  });
}

[[noreturn]] void refuse_meanwhile(const Source& source, std::string why) {
  throw Error(
      ErrorKind::request,
      {.code = "data.not_meanwhile",
       .what = "cannot prepare these rows while batches are made",
       .where = "loader.prepare = \"meanwhile\", " + source.shown(),
       .why = std::move(why),
       .next = "leave \"prepare\" out: they are prepared before the first "
               "batch, once"});
}

/// Rows may be prepared while batches are made, and are identified by what
/// their source is, whether they are kept already or not.
bool grows(const TableDatasetOptions& options, const Source& source) {
  const bool asked = options.preparing == Preparing::meanwhile;
  if (!asked &&
      (options.preparing == Preparing::before || !packs_a_stream(options)))
    return false;
  std::string why = GrowingDataset::needs_scan(options, source);
  if (!why.empty() && asked) refuse_meanwhile(source, std::move(why));
  return why.empty();
}

bool keeps_rows(const TableDatasetOptions& options, const Source& source) {
  return source.facts().of_store || options.budgets.any() ||
         (options.cache != "auto" && options.cache != "none") ||
         (options.cache == "auto" && comes_in_chunks(source));
}

/// Rows that lie in memory column by column are gathered from as many places as
/// there are columns: of many rows the first batches are, while all of them are
/// packed.
bool packs_beside(const TableDatasetOptions& options, const Source& source,
                  const Device& device) {
  constexpr std::int64_t kFew = 1 << 20;  // values, packed in some 50 ms
  constexpr std::size_t kManyChunks = 64;
  constexpr std::int64_t kTimes = 4;  // what a scan holds, of the packed rows
  if (!options.open || !source.abilities().in_memory ||
      options.preparing != Preparing::automatic || options.cache != "auto" ||
      options.budgets.any() || options.plan_only ||
      device.memory_kind() != MemoryKind::cpu)
    return false;
  const std::int64_t rows = source.count().rows.value_or(0);
  const ChunkMap* chunks = source.chunks();
  if (rows * std::ssize(options.fields) <= kFew || chunks == nullptr ||
      chunks->ends.size() > kManyChunks)
    return false;
  const auto free = read_host_limits().memory_free;
  const std::size_t row = layout_of(options.fields).row_bytes;
  return !free || static_cast<std::size_t>(kTimes * rows) * row < *free;
}

}  // namespace

std::string scan_reason(const TableDatasetOptions& options,
                        const Source& source) {
  if (options.open && grows(options, source)) return {};
  std::string why = data_reason(options, source);
  if (!why.empty() || !keeps_rows(options, source)) return why;
  if (options.budgets.any()) return "rows are kept as 'loader.cache' says";
  if (options.cache == "auto")
    return "rows are decoded in chunks, which are read once and kept";
  return "the rows are kept in '" + options.cache + "'";
}

std::string named_fingerprint(const TableDatasetOptions& options,
                              const Source& source) {
  const bool stored = grows(options, source);
  if (!stored && !data_reason(options, source).empty()) return {};
  return IndexedDataset::fingerprint_of(
      {.fields = options.fields, .split = options.split}, source, stored);
}

namespace {

/// Rows in their store, or such as are prepared while batches are made; where
/// the source cannot be opened once more, all at once. A plan reads nothing.
std::shared_ptr<const Dataset> prepare_growing(
    const TableDatasetOptions& options, std::unique_ptr<Source> source,
    Device& device) {
  TableDatasetOptions kept = options;
  kept.fingerprint = named_fingerprint(options, *source);
  kept.statistics.reset();  // nothing is fitted
  if (options.plan_only) kept.open = nullptr;
  if ((!options.open || source->abilities().in_memory) && !options.plan_only)
    return TableDataset::prepare(kept, std::move(source), device);
  const std::shared_ptr<Source> shared = std::move(source);
  if (auto stored = TableDataset::of_store(kept, shared, device)) return stored;
  auto set = std::make_shared<GrowingDataset>(kept, shared);
  const std::string line =
      uses_stores(kept)
          ? "no store yet: rows are prepared while batches are made, and kept "
            "in " +
                table_store(kept, *shared, false).path.string()
          : "rows are prepared while batches are made, in every epoch anew";
  log(LogLevel::info, line);
  if (options.scanning) options.scanning(line);
  if (options.planned) options.planned(set->plan());
  check_fingerprint(*set, options.source.fingerprint, shared->shown());
  return set;
}

/// Where a device decodes what is kept: what is missing there is told now, and
/// not when all has been read.
void load_decoders(const TableDatasetOptions& options, Device& device) {
  if (options.plan_only || options.cache == "none" ||
      (options.batches_on_host && options.batches_on_host(device)))
    return;
  const auto sides =
      device_fields(options.fields, device.memory_kind(), Runs::kept);
  if (std::ranges::any_of(sides[0], [](const DeviceField& field) {
        return field.stream_bytes.of_all_streams > 0;
      }))
    device.load_decoders();
}

/// As prepare_dataset(), before samples are packed.
std::shared_ptr<const Dataset> prepare_samples(
    const TableDatasetOptions& options, std::unique_ptr<Source> source,
    Device& device) {
  if (source->abilities().by_position && source->count().exact &&
      source->count().rows == 0)
    refuse_no_rows(source->shown());
  if (grows(options, *source))
    return prepare_growing(options, std::move(source), device);
  const bool scanned = !data_reason(options, *source).empty();
  const bool beside = !scanned && packs_beside(options, *source, device);
  const bool kept_rows = !beside && keeps_rows(options, *source);
  if (scanned || kept_rows) load_decoders(options, device);
  if (scanned) return TableDataset::prepare(options, std::move(source), device);
  if (kept_rows) {
    TableDatasetOptions kept = options;
    kept.fingerprint = named_fingerprint(options, *source);
    return TableDataset::prepare(kept, std::move(source), device);
  }
  const std::string shown = source->shown();
  log(LogLevel::info, "no initial scan: samples are read by position");
  const bool on_host =
      options.batches_on_host && options.batches_on_host(device);
  auto set = std::make_shared<IndexedDataset>(
      IndexedOptions{
          .fields = options.fields,
          .split = options.split,
          .finish_on = on_host ? MemoryKind::cpu : device.memory_kind()},
      std::move(source));
  if (options.plan_only)
    set->predict_plan(options, device);
  else if (options.cache == "auto" && !beside)
    set->keep_larger(options, device);
  if (beside) set->keep_beside(options);
  if (options.planned) options.planned(set->plan());
  check_fingerprint(*set, options.source.fingerprint, shown);
  return set;
}

}  // namespace

std::shared_ptr<const Dataset> prepare_dataset(
    const TableDatasetOptions& options, std::unique_ptr<Source> source,
    Device& device) {
  packing_of(options);  // throws before anything is read
  return packed(prepare_samples(options, std::move(source), device), options);
}

}  // namespace penstock
