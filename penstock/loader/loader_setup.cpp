#include "penstock/loader/loader_setup.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock {

LoaderSetup::LoaderSetup(std::shared_ptr<const Dataset> of,
                         const LoaderOptions& given, Device& on)
    : dataset(std::move(of)),
      options(resolved(given)),
      device(on),
      order(order_of(options, *dataset)),
      kept(dataset->plan().tier != Tier::none),
      resident(gathered_on_device(dataset->plan().tier) && !on_host()),
      queues(device_finishes(*dataset, options.side, device)),
      operations(
          std::make_shared<const BatchOperations>(options, dataset->facts())),
      maker(operations->tensors(), !on_host() && !resident, device),
      most(largest_batch()),
      inlined(options.workers == 0 || small()),
      readers(inlined
                  ? 0
                  : std::min(options.readers, dataset->facts().most_readers)),
      planner(*dataset, options, order, maker.tensors()) {}

BatchLayout LoaderSetup::largest_batch() const {
  const std::int64_t rows = most_rows(options, order.samples);
  BatchLayout size =
      most_bytes(dataset->facts(), options.side, maker.tensors(), rows);
  if (queues)
    size.scratch = std::max(size.scratch, operations->scratch_bytes(rows));
  return size;
}

/// A batch that is copied in less time than handing it from thread to thread
/// takes: 9 us for 72 KiB, where a worker takes 20 to 40.
bool LoaderSetup::small() const {
  constexpr std::size_t kSmall = std::size_t{128} << 10;
  return kept && on_host() && most.bytes <= kSmall;
}

int LoaderSetup::parts_of(LoaderThreads threads) const {
  if (resident || inlined) return 1;
  if (options.batches >= 0)  // no more are ever ahead
    threads.prefetch = static_cast<int>(
        std::min<std::int64_t>(threads.prefetch, options.batches));
  return parts_of_batch(threads);
}

void LoaderSetup::plan(Position at, int parts, StageMeter& meter,
                       Slot& slot) const {
  BusyScope busy(meter);
  planner.plan(at, parts, slot);
  slot.layout.scratch = most.scratch;
  slot.rows_left = std::ssize(slot.plan.bin_ends);
  meter.add_items(std::ssize(slot.ids), 0);
}

// Samples that differ in size are given memory when they are measured, so that
// one long sample does not cost each slot.
std::shared_ptr<Slot> LoaderSetup::make_slot() const {
  const bool varies =
      !dataset->facts().longest.empty() ||
      std::ranges::any_of(
          dataset->facts().device_fields_of(options.side),
          [](const DeviceField& field) { return field.longest_run > 1; });
  return maker.make(varies ? BatchLayout() : most,
                    most_rows(options, order.samples));
}

std::unique_ptr<BatchFiller> LoaderSetup::make_filler(
    FillMeters& meters) const {
  return std::make_unique<BatchFiller>(*dataset, *operations, options, device,
                                       meters);
}

StageMeter& LoaderSetup::last_stage(FillMeters& meters) const {
  if (kept) return meters.gather;
  for (StageMeter* stage : {&meters.map, &meters.pack})
    if (stage->items() > 0) return *stage;
  return meters.read;
}

}  // namespace penstock
