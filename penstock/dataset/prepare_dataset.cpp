#include "penstock/dataset/prepare_dataset.h"

#include <algorithm>
#include <utility>

#include "penstock/base/host_limits.h"
#include "penstock/dataset/device_fields.h"
#include "penstock/dataset/growing/growing_dataset.h"
#include "penstock/dataset/indexed/expected_rows.h"
#include "penstock/dataset/packed/packed_dataset.h"
#include "penstock/dataset/table/preparation_plan.h"

namespace penstock {

namespace {

/// With what `plan` decides. Rows that are identified by their source alone are
/// not fitted.
TableDatasetOptions decided(const TableDatasetOptions& options,
                            const PreparationPlan& plan) {
  TableDatasetOptions own = options;
  own.fingerprint = plan.fingerprint;
  own.preparation = std::make_shared<const PreparationPlan>(plan);
  if (plan.identity == RowsIdentity::stored) own.statistics.reset();
  return own;
}

/// Rows in their store, or such as are prepared while batches are made. A plan
/// reads nothing.
std::shared_ptr<const Dataset> prepare_growing(TableDatasetOptions options,
                                               const PreparationPlan& plan,
                                               BoundSource source,
                                               Device& device) {
  if (options.plan_only || !plan.uses_store) options.open = nullptr;
  if (auto stored = TableDataset::of_store(options, source, device))
    return stored;
  auto set = std::make_shared<GrowingDataset>(options, source);
  const std::string line =
      plan.uses_store
          ? "there is no store yet: rows are prepared while "
            "batches are produced, and kept in " +
                table_store(options, *source.source, false).path.string()
          : "rows are prepared while batches are produced, again "
            "in every epoch";
  log(LogLevel::info, line);
  if (options.scanning) options.scanning(line);
  if (options.planned) options.planned(set->plan());
  return set;
}

/// Where a device decodes what is kept: what is missing there is told now, and
/// not when all has been read.
void load_decoders(const TableDatasetOptions& options, Device& device) {
  if (options.plan_only || options.cache == "none" || options.batches_on_host)
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
    BoundSource source, Device& device) {
  const bool beside = plan.form == RowsForm::beside;
  auto set = std::make_shared<IndexedDataset>(
      IndexedOptions{
          .fields = options.fields,
          .split = options.split,
          .finish_on =
              options.batches_on_host ? MemoryKind::cpu : device.memory_kind(),
          .preparation = std::make_shared<const PreparationPlan>(plan)},
      std::move(source));
  if (options.plan_only)
    set->predict_plan(options, device);
  else if (options.cache == "auto" && !beside)
    set->keep_larger(options, device);
  if (beside) set->keep_beside(options);
  if (options.planned) options.planned(set->plan());
  return set;
}

/// As prepare_dataset(), before samples are packed.
std::shared_ptr<const Dataset> prepare_samples(
    const TableDatasetOptions& options, BoundSource source, Device& device) {
  const PreparationPlan plan = plan_preparation(
      options, source,
      {.device_is_host = device.memory_kind() == MemoryKind::cpu,
       .memory_free = read_host_limits().memory_free});
  log(LogLevel::info, preparation_text(name_of(plan.form), plan.reason));
  if (plan.form == RowsForm::scanned) {
    load_decoders(options, device);
    return TableDataset::prepare(decided(options, plan), std::move(source),
                                 device);
  }
  const std::string shown = source.source->shown();
  std::shared_ptr<const Dataset> set =
      plan.form == RowsForm::growing
          ? prepare_growing(decided(options, plan), plan, std::move(source),
                            device)
          : prepare_by_position(options, plan, std::move(source), device);
  check_fingerprint(*set, options.source.fingerprint, shown);
  return set;
}

}  // namespace

std::shared_ptr<const Dataset> prepare_dataset(
    const TableDatasetOptions& options, std::unique_ptr<Source> source,
    Device& device) {
  return prepare_dataset(
      options, bound_source(options.fields, std::move(source)), device);
}

std::shared_ptr<const Dataset> prepare_dataset(
    const TableDatasetOptions& options, BoundSource source, Device& device) {
  packing_of(options);  // throws before anything is read
  return packed(prepare_samples(options, std::move(source), device), options);
}

}  // namespace penstock
