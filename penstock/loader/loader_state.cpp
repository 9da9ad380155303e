#include "penstock/loader/loader_state.h"

#include <algorithm>
#include <string>
#include <utility>

#include "penstock/loader/ring_bytes.h"

namespace penstock {

LoaderState::LoaderState(std::shared_ptr<const Dataset> of,
                         const LoaderOptions& options, Device& device)
    : setup(std::move(of), options, device),
      decoders(HeldFor::copies, HeldIn::device,
               stream_bytes(setup.dataset->facts(), setup.options.side)
                   .of_all_streams),
      threads{setup.options.workers, setup.readers, setup.options.prefetch},
      workers(setup.options.workers),
      meters(setup.options.workers, setup.options.stage_names,
             setup.options.per_sample, setup.readers,
             setup.dataset->facts().most_readers),
      slots(setup, meters),
      copies(device),
      delivery(setup),
      planned(setup, slots, meters, delivery),
      inlined(setup, slots, meters, copies) {}

LoaderState::~LoaderState() {
  planned.abandon(0);
  delivery.close();
  stage.reset();  // joins
}

void LoaderState::start() {
  if (setup.readers > 0) {
    reads = setup.dataset->open_read_ahead(
        {.threads = setup.readers, .meter = meters.read, .arrived = [this] {
           planned.rows_arrived();
         }});
    if (reads != nullptr) planned.read_by(*reads);
  }
  stage = std::make_unique<Stage>(Stage::Options{
      .name = "loader",
      .workers = setup.options.workers,
      .body = [this](int) { work(); },
      .failed =
          [this](std::exception_ptr error) { planned.end(std::move(error)); },
      .last = [this] { delivery.close(); }});
}

/// False where no more items are to be taken. A filler that threw may be in
/// any state: another one fills what comes before the error.
bool LoaderState::carry_out(std::unique_ptr<BatchFiller>& by,
                            const WorkItem& item) {
  std::shared_ptr<Slot> slot = item.slot;
  try {
    if (by == nullptr) by = setup.make_filler(meters);
    if (!planned.filled(item,
                        by->fill(*slot, item.begin, item.end, item.read.get())))
      return true;
    by->operate(*slot);
    if (slot->host.data() == nullptr) return pass_on(*by, slot);
    copies.add(slot);
    while (copies.next(slot))
      if (!pass_on(*by, slot)) return false;
  } catch (...) {
    delivery.put_error(slot->number,
                       named_error(std::current_exception(), "loader"));
    planned.abandon(slot->number);
    by.reset();  // which waits for its work
    copies.settle();
  }
  return true;  // also after an error: an earlier batch may wait for a read
}

bool LoaderState::pass_on(BatchFiller& by, const std::shared_ptr<Slot>& slot) {
  by.finish(*slot);
  return delivery.put(slot);
}

void LoaderState::work() {
  std::unique_ptr<BatchFiller> own = setup.make_filler(meters);
  while (std::optional<WorkItem> item = planned.take(workers))
    if (!carry_out(own, *item)) return;
}

/// Fills items of the next batch instead of waiting for a thread to wake. Not
/// where the device does the work, nor where another reader would be opened.
void LoaderState::help() {
  if (!setup.kept || setup.resident) return;
  while (!delivery.ready()) {
    try {
      if (filler == nullptr) filler = setup.make_filler(meters);
    } catch (...) {
      planned.end(named_error(std::current_exception(), "loader"));
      return;
    }
    std::optional<WorkItem> item = planned.take_of_next_batch();
    if (!item || !carry_out(filler, *item)) return;
  }
}

std::shared_ptr<Slot> LoaderState::next() {
  delivery.check();
  slots.keep_one_free();
  std::shared_ptr<Slot> slot;
  if (setup.inlined) {
    slot = inlined.next();
  } else {
    slot = delivery.take([this] { help(); });
    if (slot != nullptr) planned.delivered();
  }
  if (slot == nullptr) check_end();
  return slot;
}

Slot* LoaderState::next_into(std::span<const TensorView> to) {
  delivery.check();
  Slot* slot = inlined.next_into(to);
  if (slot == nullptr)
    check_end();
  else
    delivery.count(*slot, setup.order);
  return slot;
}

/// Only after the last batch that was asked for may there be none.
void LoaderState::check_end() {
  const std::int64_t delivered =
      setup.inlined ? inlined.made() : planned.count_delivered();
  const std::int64_t wanted = setup.options.batches;
  if (wanted >= 0 && delivered == wanted) return;
  refuse_early_end(
      "batch " + std::to_string(delivered + 1) +
      (wanted < 0 ? " of an endless loader" : " of " + std::to_string(wanted)));
}

// Batches are divided into fewer items where more of them are ahead. What may
// throw comes first: where there is no memory for more slots, nothing has
// changed.
void LoaderState::set_threads(const LoaderThreads& to) {
  slots.grow_to(2 + to.prefetch);
  if (reads != nullptr) reads->set_threads(to.readers);
  workers.set(to.workers, [this](int more) { return stage->add(more); });
  threads = {workers.wanted(), setup.readers > 0 ? to.readers : 0, to.prefetch};
  planned.set_ahead(to.prefetch, setup.parts_of(threads));
}

StageNumbers LoaderState::numbers_of(const StageMeter& meter) const {
  StageNumbers numbers = meter.numbers();
  if (numbers.pool == "loader") numbers.workers = threads.workers;
  if (numbers.pool.ends_with("readers")) numbers.workers = threads.readers;
  return numbers;
}

}  // namespace penstock
