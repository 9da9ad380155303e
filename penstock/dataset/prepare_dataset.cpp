#include "penstock/dataset/prepare_dataset.h"

#include <algorithm>
#include <utility>

#include "penstock/dataset/device_fields.h"
#include "penstock/dataset/growing/growing_dataset.h"
#include "penstock/dataset/indexed/expected_rows.h"
#include "penstock/dataset/packed/packed_dataset.h"
#include "penstock/dataset/table/preparation_plan.h"

namespace penstock {

namespace {

/// Empty where rows are identified by what a scan finds.
std::string fingerprint_of(RowsIdentity identity,
                           const TableDatasetOptions& options,
                           const Source& source) {
  if (identity == RowsIdentity::contents) return {};
  return IndexedDataset::fingerprint_of(
      {.fields = options.fields, .split = options.split}, source,
      identity == RowsIdentity::stored);
}

/// As `plan` has them identified. What is named by its source alone is not
/// fitted.
TableDatasetOptions identified(const TableDatasetOptions& options,
                               const PreparationPlan& plan,
                               const Source& source) {
  TableDatasetOptions own = options;
  if (plan.identity == RowsIdentity::contents) return own;
  own.fingerprint = fingerprint_of(plan.identity, options, source);
  if (plan.identity == RowsIdentity::stored) own.statistics.reset();
  return own;
}

/// Rows in their store, or such as are prepared while batches are made. A plan
/// reads nothing.
std::shared_ptr<const Dataset> prepare_growing(TableDatasetOptions options,
                                               const PreparationPlan& plan,
                                               std::shared_ptr<Source> source,
                                               Device& device) {
  if (options.plan_only || !plan.uses_store) options.open = nullptr;
  if (auto stored = TableDataset::of_store(options, source, device))
    return stored;
  auto set = std::make_shared<GrowingDataset>(options, source);
  const std::string line =
      plan.uses_store ? "there is no store yet: rows are prepared while "
                        "batches are produced, and kept in " +
                            table_store(options, *source, false).path.string()
                      : "rows are prepared while batches are produced, again "
                        "in every epoch";
  log(LogLevel::info, line);
  if (options.scanning) options.scanning(line);
  if (options.planned) options.planned(set->plan());
  check_fingerprint(*set, options.source.fingerprint, source->shown());
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

std::shared_ptr<const Dataset> prepare_by_position(
    const TableDatasetOptions& options, const PreparationPlan& plan,
    std::unique_ptr<Source> source, Device& device) {
  const std::string shown = source->shown();
  const bool beside = plan.form == RowsForm::beside;
  log(LogLevel::info, "no initial scan: " + plan.reason);
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

/// As prepare_dataset(), before samples are packed.
std::shared_ptr<const Dataset> prepare_samples(
    const TableDatasetOptions& options, std::unique_ptr<Source> source,
    Device& device) {
  const PreparationPlan plan = plan_preparation(options, *source, device);
  switch (plan.form) {
    case RowsForm::scanned: {
      load_decoders(options, device);
      const TableDatasetOptions own = identified(options, plan, *source);
      return TableDataset::prepare(own, std::move(source), device);
    }
    case RowsForm::growing: {
      TableDatasetOptions own = identified(options, plan, *source);
      return prepare_growing(std::move(own), plan, std::move(source), device);
    }
    case RowsForm::by_position:
    case RowsForm::beside:
      break;
  }
  return prepare_by_position(options, plan, std::move(source), device);
}

}  // namespace

std::string named_fingerprint(const TableDatasetOptions& options,
                              const Source& source) {
  const PreparationPlan plan =
      decide(asked_rows(options, source), source_traits(source), {});
  return fingerprint_of(plan.identity, options, source);
}

std::shared_ptr<const Dataset> prepare_dataset(
    const TableDatasetOptions& options, std::unique_ptr<Source> source,
    Device& device) {
  packing_of(options);  // throws before anything is read
  return packed(prepare_samples(options, std::move(source), device), options);
}

}  // namespace penstock
