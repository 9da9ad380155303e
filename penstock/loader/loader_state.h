#pragma once

#include <memory>
#include <span>

#include "penstock/loader/batch_delivery.h"
#include "penstock/loader/copy_line.h"
#include "penstock/loader/inline_maker.h"
#include "penstock/loader/loader_setup.h"
#include "penstock/loader/planned_batches.h"
#include "penstock/loader/slot_supply.h"

namespace penstock {

/// The parts of a loader, and the threads that use them.
///
/// `planned` gives items of work to the workers. The worker that fills the last
/// item of a batch hands it to the line of copies to the device, and passes on
/// the batches whose turn has come; `delivery` restores their order. A consumer
/// that would wait for rows that are kept fills items of its batch as well.
/// Where no threads are worth it, `inlined` makes each batch when it is asked
/// for, and `planned` is not used.
///
/// Where no worker is left, the closed delivery still holds the error. An end
/// without an error before `options.batches` is an internal error.
struct LoaderState {
  LoaderState(std::shared_ptr<const Dataset> of, const LoaderOptions& options,
              Device& device);
  ~LoaderState();

  /// Starts the threads. Throws Error(request), code exec.threads.
  void start();
  /// The next batch; null after the last, and after the last alone.
  std::shared_ptr<Slot> next();
  /// The same in the caller's memory; of inlined loaders on the host.
  Slot* next_into(std::span<const TensorView> to);
  void set_threads(const LoaderThreads& to);
  /// With the number of threads that there are now.
  StageNumbers numbers_of(const StageMeter& meter) const;

  const LoaderSetup setup;
  /// The memory of a device's decoders, once for each loader that uses them.
  const MemoryCharge decoders;
  LoaderThreads threads;  ///< as set
  Headcount workers;
  FillMeters meters;
  SlotSupply slots;
  CopyLine copies;
  BatchDelivery delivery;
  PlannedBatches planned;
  InlineMaker inlined;
  std::unique_ptr<BatchFiller> filler;  ///< the consumer's, where it helps
  std::unique_ptr<ReadAhead> reads;     ///< its threads use all of the above
  std::unique_ptr<Stage> stage;         ///< the last: so do these

 private:
  bool carry_out(std::unique_ptr<BatchFiller>& by, const WorkItem& item);
  bool pass_on(BatchFiller& by, const std::shared_ptr<Slot>& slot);
  void work();
  void help();
  void check_end();
};

}  // namespace penstock
