#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <iterator>

#include "penstock/loader/bad_samples.h"
#include "penstock/loader/batch_operations.h"
#include "penstock/loader/copy_line.h"
#include "penstock/loader/fill.h"
#include "penstock/loader/planner.h"
#include "penstock/loader/slot.h"
#include "penstock/loader/targets.h"
#include "penstock/loader/work_items.h"

namespace penstock {

// Workers take items of the earliest batch that is not yet complete, so that
// all of them fill it where it has parts enough (parts_of_batch()). The worker
// that fills the last item hands it to the line of copies to the device, and
// sends on those whose turn has come; the sequencer restores order. A consumer
// that would wait for rows that are kept fills items of its batch too.
//
// Where batches are read from a source, I/O threads of the data set begin to
// read an item as soon as its batch is planned, and batches are planned as far
// ahead as may be. A worker then takes the earliest item whose rows are there,
// so that it never waits for the source. An item owns its read: where it is
// dropped, the I/O threads leave it out.
//
// A batch is counted when its plan is complete. So an error has a number: that
// of the batch which could not be filled, or else (a batch could not be
// planned, a worker could not begin) that of the first batch which is not
// planned. No more batches are planned then, items of that batch and later ones
// are dropped, those before it are completed, and the consumer gets the error
// after them, whatever the number of workers. Where no worker is left, the
// closed sequencer still holds the error. An end without an error before
// `options.batches` is an internal error.
//
// One thread plans at a time (`planning`), and holds no lock while it does.
//
// Lock order: `mutex`, then the ring's or the sequencer's own. No data set is
// called, no event waited for and no batch filled under `mutex`.
struct LoaderState {
  const std::shared_ptr<const Dataset> dataset;
  const LoaderOptions options;
  Device& device;
  const Order order;
  const bool kept;
  const bool resident;
  const bool queues;  // device_finishes()
  const std::shared_ptr<const BatchOperations> operations;
  const SlotMaker maker;
  const BatchLayout most;
  /// What a device's decoders hold, once for each loader that uses them.
  const MemoryCharge decoders{
      HeldFor::copies, HeldIn::device,
      stream_bytes(dataset->facts(), options.side).of_all_streams};
  /// Batches are filled by the consumer, on request.
  const bool inlined;
  const int readers;      // I/O threads; 0: nothing is read ahead
  LoaderThreads threads;  // as set
  Headcount workers;
  const BatchPlanner planner;
  const int parts_at_first = parts_of(threads);  ///< of a batch, at most
  std::atomic<int> parts{parts_at_first};        ///< of the next one
  FillMeters meters;
  StageMeter deliver{"deliver", 1};

  const std::shared_ptr<SlotRing> ring = std::make_shared<SlotRing>();
  Sequencer<std::shared_ptr<Slot>> complete;
  CopyLine copies{device};
  std::atomic<std::int64_t> wait_order{0};

  Mutex mutex;
  Condition changed;
  Position next_plan PENSTOCK_GUARDED_BY(mutex);
  std::int64_t planned PENSTOCK_GUARDED_BY(mutex) = 0;
  WorkItems items PENSTOCK_GUARDED_BY(mutex);
  bool planning PENSTOCK_GUARDED_BY(mutex) = false;
  std::int64_t delivered PENSTOCK_GUARDED_BY(mutex) = 0;
  std::int64_t prefetch PENSTOCK_GUARDED_BY(mutex) = options.prefetch;
  bool planning_ended PENSTOCK_GUARDED_BY(mutex) = false;
  /// Empty: memory for the items of the next batch.
  std::vector<WorkItem> spare PENSTOCK_GUARDED_BY(mutex);

  // The consumer's.
  Position position;
  BadSamples bad;
  int slots = 0;
  unsigned grown = 0;                   ///< times that the ring grew
  std::exception_ptr broken;            // inlined
  std::unique_ptr<BatchFiller> filler;  // where it fills batches itself
  Slot direct;                          // of next_into(), without memory
  std::unique_ptr<ReadAhead> reads;     // its threads use all the above
  std::unique_ptr<Stage> stage;         // last: so do these

  LoaderState(std::shared_ptr<const Dataset> of, const LoaderOptions& given,
              Device& on)
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
        threads{options.workers, readers, options.prefetch},
        workers(options.workers),
        planner(*dataset, options, order, maker.tensors()),
        meters(options.workers, options.stage_names, options.per_sample,
               readers, dataset->facts().most_readers),
        next_plan(options.start),
        position(options.start),
        bad(options, order) {}

  int parts_of(LoaderThreads of) const {
    if (resident || inlined) return 1;
    if (options.batches >= 0)  // no more are ever ahead
      of.prefetch = static_cast<int>(
          std::min<std::int64_t>(of.prefetch, options.batches));
    return parts_of_batch(of);
  }
  bool on_host() const { return device.memory_kind() == MemoryKind::cpu; }
  BatchLayout largest_batch() const {
    std::int64_t rows = most_rows(options, order.samples);
    BatchLayout size =
        most_bytes(dataset->facts(), options.side, maker.tensors(), rows);
    if (queues)
      size.scratch = std::max(size.scratch, operations->scratch_bytes(rows));
    return size;
  }
  /// A batch that is copied in less time than handing it from thread to thread
  /// takes: 9 us for 72 KiB, where a worker takes 20 to 40.
  bool small() const {
    constexpr std::size_t kSmall = std::size_t{128} << 10;
    return kept && on_host() && most.bytes <= kSmall;
  }

  void add_slot() {
    // What samples of equal size take is known; others are given memory when
    // they are measured, so that one long sample does not cost each slot.
    bool varies =
        !dataset->facts().longest.empty() ||
        std::ranges::any_of(
            dataset->facts().device_fields_of(options.side),
            [](const DeviceField& field) { return field.longest_run > 1; });
    std::shared_ptr<Slot> slot = maker.make(varies ? BatchLayout() : most,
                                            most_rows(options, order.samples));
    slot->ring = ring;
    ring->give_back(std::move(slot));
    ++slots;
  }

  std::unique_ptr<BatchFiller> make_filler() {
    return std::make_unique<BatchFiller>(*dataset, *operations, options, device,
                                         meters);
  }

  bool no_more() const PENSTOCK_REQUIRES(mutex) {
    return options.batches >= 0 && planned == options.batches;
  }

  void plan(Position at, Slot& slot) {
    BusyScope busy(meters.plan);
    planner.plan(at, parts, slot);
    slot.layout.scratch = most.scratch;
    slot.rows_left = std::ssize(slot.plan.bin_ends);
    meters.plan.add_items(std::ssize(slot.ids), 0);
  }

  /// Counts the batch that was planned at `next_plan`.
  void count(Slot& slot) PENSTOCK_REQUIRES(mutex) {
    next_plan = next_position(order, next_plan);
    slot.number = planned++;
  }

  bool far_enough() const PENSTOCK_REQUIRES(mutex) {
    return planned - delivered >= prefetch;
  }
  /// What is read ahead is planned as soon as may be, all else when the batch
  /// before it is given out.
  bool may_plan() const PENSTOCK_REQUIRES(mutex) {
    return !planning && !planning_ended && !no_more() && !far_enough() &&
           (items.empty() || reads != nullptr);
  }

  std::optional<WorkItem> ready_item() PENSTOCK_REQUIRES(mutex) {
    std::optional<WorkItem> item = items.take_ready();
    if (item && items.empty()) {
      if (no_more() || planning_ended)
        changed.notify_all();  // nothing is left to do
      else if (may_plan())
        changed.notify_one();
    }
    return item;
  }

  /// Nullopt when there is nothing left to do.
  std::optional<WorkItem> take_item() {
    Lock lock(mutex);
    for (bool no_slot = false;;) {
      if (workers.leaves()) {
        changed.notify_one();  // what it was woken for is another's now
        return std::nullopt;
      }
      if (may_plan() && (items.empty() || !no_slot)) {
        no_slot = !begin_batch();
        continue;
      }
      if (std::optional<WorkItem> item = ready_item()) return item;
      if (items.empty() && (planning_ended || no_more())) return std::nullopt;
      wait_for_change();
      no_slot = false;
    }
  }

  void wait_for_change() PENSTOCK_REQUIRES(mutex) {
    bool for_rows = !items.empty(), for_room = far_enough();
    Nanoseconds asked = wall_clock().now();
    changed.wait(mutex);
    Nanoseconds waited = wall_clock().now() - asked;
    if (for_rows)
      meters.prepare.add_blocked_get(waited);
    else if (for_room)
      last_stage().add_blocked_put(waited);
  }

  /// Plans the next batch and adds its items. Waits for a free slot where there
  /// is nothing else to do; false where there is and no slot is free.
  bool begin_batch() PENSTOCK_REQUIRES(mutex) {
    planning = true;
    const Position at = next_plan;
    const bool waits = items.empty();
    std::shared_ptr<Slot> slot;
    std::vector<WorkItem> begun = std::move(spare);
    std::exception_ptr error;
    {
      Unlock unlock(mutex);
      try {
        slot = open_slot(waits);
        if (slot != nullptr) {
          plan(at, *slot);
          maker.carve(*slot);
          append_items(slot, reads.get(), begun);
        }
      } catch (...) {
        error = named_error(std::current_exception(), "loader");
      }
    }
    planning = false;
    if (error) {
      end_planning(std::move(error));
    } else if (slot != nullptr && !planning_ended) {
      // Whoever planned a batch takes its first item.
      if (begun.size() > 1 || reads != nullptr) changed.notify_all();
      slot->number = planned;  // it is counted once there was memory for them
      items.add(begun);
      count(*slot);
    }
    begun.clear();  // where they are not to be filled
    spare = std::move(begun);
    return slot != nullptr || planning_ended;
  }

  /// A free slot that its readers have really finished with. Null when the
  /// loader ends, or at once when none is free and `waits` is false.
  std::shared_ptr<Slot> open_slot(bool waits = true) {
    Nanoseconds asked = wall_clock().now();
    std::shared_ptr<Slot> slot = waits ? ring->take() : ring->try_take();
    if (slot != nullptr) slot->settle();
    last_stage().add_blocked_put(wall_clock().now() - asked);
    return slot;
  }

  StageMeter& last_stage() {
    if (kept) return meters.gather;
    for (StageMeter* stage : {&meters.map, &meters.pack})
      if (stage->items() > 0) return *stage;
    return meters.read;
  }

  /// True for the worker that filled the last rows.
  bool rows_done(Slot& slot, const WorkItem& item,
                 std::vector<RejectedSample> rejected) {
    Lock lock(mutex);
    std::ranges::move(rejected, std::back_inserter(slot.rejected));
    slot.rows_left -= item.end - item.begin;
    return slot.rows_left == 0;
  }

  /// False where no more items are to be taken. A filler that threw may be in
  /// any state: another one fills what comes before the error.
  bool carry_out(std::unique_ptr<BatchFiller>& filler, const WorkItem& item) {
    std::shared_ptr<Slot> slot = item.slot;
    try {
      if (filler == nullptr) filler = make_filler();
      if (!rows_done(
              *slot, item,
              filler->fill(*slot, item.begin, item.end, item.read.get())))
        return true;
      filler->operate(*slot);
      if (slot->host.data() == nullptr) return put(*filler, slot);
      copies.add(slot);
      while (copies.next(slot))
        if (!put(*filler, slot)) return false;
    } catch (...) {
      complete.put_error(slot->number,
                         named_error(std::current_exception(), "loader"));
      abandon(slot->number);
      filler.reset();  // which waits for its work
      copies.settle();
    }
    return true;  // also after an error: an earlier batch may wait for a read
  }

  bool put(BatchFiller& filler, const std::shared_ptr<Slot>& slot) {
    filler.finish(*slot);
    return complete.put(slot->number, slot);
  }

  void work() {
    std::unique_ptr<BatchFiller> own = make_filler();
    while (std::optional<WorkItem> item = take_item())
      if (!carry_out(own, *item)) return;
  }

  /// An item of the batch that the consumer waits for; nullopt where all of
  /// them are taken.
  std::optional<WorkItem> take_own_item() {
    Lock lock(mutex);
    if (items.empty() && planned == delivered && may_plan()) begin_batch();
    if (items.empty() || items.first_batch() != delivered) return std::nullopt;
    return ready_item();
  }

  /// Fills items of the next batch instead of waiting for a thread to wake.
  /// Not where the device does the work, nor where another reader would be
  /// opened.
  void help() {
    if (!kept || resident) return;
    while (!complete.ready_within(Nanoseconds(0))) {
      try {
        if (filler == nullptr) filler = make_filler();
      } catch (...) {
        fail(named_error(std::current_exception(), "loader"));
        return;
      }
      std::optional<WorkItem> item = take_own_item();
      if (!item || !carry_out(filler, *item)) return;
    }
  }

  /// A worker failed outside of any item. What is planned is still completed by
  /// the others.
  void fail(std::exception_ptr error) {
    Lock lock(mutex);
    end_planning(std::move(error));
  }

  /// The consumer gets `error`, if any, after what is planned.
  void end_planning(std::exception_ptr error) PENSTOCK_REQUIRES(mutex) {
    planning_ended = true;
    changed.notify_all();
    ring->close();
    if (error) complete.put_error(planned, std::move(error));
  }

  /// Leaves the items of batch `number` and later ones, which nobody will take.
  void abandon(std::int64_t number) {
    std::optional<WorkItem> left;
    do {
      left.reset();  // without the lock
      Lock lock(mutex);
      end_planning(nullptr);
      left = items.take_last_from(number);
    } while (left);
  }

  /// Called on an I/O thread.
  void rows_arrived() {
    Lock lock(mutex);
    changed.notify_one();
  }

  /// Calls `fill`, which plans and fills the next batch on this thread. False
  /// after the last one.
  bool fill_inline(const std::function<void()>& fill) {
    if (broken) std::rethrow_exception(broken);
    {
      Lock lock(mutex);
      if (no_more()) return false;
    }
    try {
      if (filler == nullptr) filler = make_filler();
      fill();
    } catch (...) {
      broken = named_error(std::current_exception(), "loader");
      if (filler != nullptr) filler->settle();
      copies.settle();
      std::rethrow_exception(broken);
    }
    Lock lock(mutex);
    ++delivered;
    return true;
  }

  void plan_inline(Slot& slot) {
    Lock lock(mutex);
    Position at = next_plan;
    {
      Unlock unlock(mutex);
      plan(at, slot);
    }
    count(slot);
  }

  std::shared_ptr<Slot> fill_here() {
    std::shared_ptr<Slot> slot;  // goes after what is queued on it has ended
    bool there = fill_inline([&] {
      slot = open_slot();
      plan_inline(*slot);
      maker.carve(*slot);
      slot->rejected = filler->fill(*slot, 0, std::ssize(slot->plan.bin_ends));
      filler->operate(*slot);
      if (slot->host.data() != nullptr) copies.copy(*slot);
      filler->finish(*slot);
    });
    return there ? slot : nullptr;
  }

  /// The same, straight into the caller's memory.
  bool fill_direct(std::span<const TensorView> to) {
    return fill_inline([&] {
      plan_inline(direct);
      direct.fill.clear();
      for (const TensorView& view : to) direct.fill.push_back(view.data);
      direct.rejected =
          filler->fill(direct, 0, std::ssize(direct.plan.bin_ends));
      filler->operate(direct);
    });
  }

  /// Only after the last requested batch may there be none.
  void check_end() {
    Lock lock(mutex);
    if (options.batches >= 0 && delivered == options.batches) return;
    std::string of = options.batches < 0
                         ? " of an endless loader"
                         : " of " + std::to_string(options.batches);
    refuse_early_end("batch " + std::to_string(delivered + 1) + of);
  }

  void add_wait(Nanoseconds asked, bool out_of_order) {
    Nanoseconds waited = wall_clock().now() - asked;
    deliver.add_blocked_get(waited);
    if (out_of_order) wait_order.fetch_add(waited.count());
  }

  bool ready_within(Nanoseconds time) {
    Nanoseconds asked = wall_clock().now();
    bool out_of_order = complete.misses_next();
    bool ready = complete.ready_within(time);
    add_wait(asked, out_of_order);
    return ready;
  }

  std::shared_ptr<Slot> wait_for_next() {
    Nanoseconds asked = wall_clock().now();
    bool out_of_order = complete.misses_next();
    help();
    std::optional<std::shared_ptr<Slot>> taken = complete.take();
    if (!taken) return nullptr;
    add_wait(asked, out_of_order);
    Lock lock(mutex);
    ++delivered;
    if (may_plan()) changed.notify_one();
    return std::move(*taken);
  }

  /// Without a free slot there would be no next batch, ever.
  void keep_a_slot_free() {
    if (ring->lent() < slots) return;
    if (std::has_single_bit(++grown))  // 1, 2, 4, ...: not for every batch
      log(LogLevel::warning,
          "the loop holds " + std::to_string(slots) +
              " batches at once, so the ring of batches grows by one; destroy "
              "a batch once its step is queued, or raise 'loader.prefetch'");
    add_slot();
  }

  /// Batches are read in fewer parts where more of them are ahead, and in no
  /// more than at first, which would be more statements. Called by the
  /// consumer. What may throw comes first: where there is no memory for more
  /// slots, nothing has changed.
  void set_threads(const LoaderThreads& to) {
    while (slots < 2 + to.prefetch) add_slot();
    if (reads != nullptr) reads->set_threads(to.readers);
    workers.set(to.workers, [this](int more) { return stage->add(more); });
    threads = {workers.wanted(), readers > 0 ? to.readers : 0, to.prefetch};
    parts = std::min(parts_at_first, parts_of(threads));
    Lock lock(mutex);
    prefetch = to.prefetch;
    changed.notify_all();
  }

  /// As many threads as there are now.
  StageNumbers numbers_of(const StageMeter& meter) const {
    StageNumbers numbers = meter.numbers();
    if (numbers.pool == "loader") numbers.workers = threads.workers;
    if (numbers.pool.ends_with("readers")) numbers.workers = threads.readers;
    return numbers;
  }

  /// What is true of every batch that goes to the consumer.
  void deliver_slot(Slot& slot) {
    if (!slot.rejected.empty() || bad.any()) {
      std::ranges::sort(slot.rejected, {}, &RejectedSample::row);
      bad.add(slot);
    }
    deliver.add_items(std::ssize(slot.ids), 0);
    position = next_position(order, slot.plan.at);
  }
};

}  // namespace penstock
