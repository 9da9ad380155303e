#include "penstock/dataset/prepare_dataset.h"

#include "penstock/dataset/expected_rows.h"
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

bool keeps_rows(const TableDatasetOptions& options, const Source& source) {
  return options.budgets.any() ||
         (options.cache != "auto" && options.cache != "none") ||
         (options.cache == "auto" && comes_in_chunks(source));
}

}  // namespace

std::string scan_reason(const TableDatasetOptions& options,
                        const Source& source) {
  std::string why = data_reason(options, source);
  if (!why.empty() || !keeps_rows(options, source)) return why;
  if (options.budgets.any()) return "rows are kept as 'loader.cache' says";
  if (options.cache == "auto")
    return "rows are decoded in chunks, which are read once and kept";
  return "the rows are kept in '" + options.cache + "'";
}

std::string named_fingerprint(const TableDatasetOptions& options,
                              const Source& source) {
  if (!data_reason(options, source).empty()) return {};
  return IndexedDataset::fingerprint_of(
      {.fields = options.fields, .split = options.split}, source);
}

namespace {

/// As prepare_dataset(), before samples are packed.
std::shared_ptr<const Dataset> prepare_samples(
    const TableDatasetOptions& options, std::unique_ptr<Source> source,
    Device& device) {
  if (!data_reason(options, *source).empty())
    return TableDataset::prepare(options, std::move(source), device);
  if (keeps_rows(options, *source)) {
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
