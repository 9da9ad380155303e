#include "penstock/loader/batches.h"

#include <algorithm>
#include <atomic>

#include "penstock/loader/fill.h"
#include "penstock/loader/slot.h"

namespace penstock {

Order order_of(const LoaderOptions& options, const Dataset& rows) {
  return {.samples = rows.rows_on(options.side),
          .seed = options.seed,
          .shuffle = options.shuffle,
          .batch_size = options.batch_size,
          .tail = options.tail};
}

namespace {

/// In a batch, where there are `rows` rows.
std::int64_t most_rows(const LoaderOptions& options, std::int64_t rows) {
  std::int64_t shared = options.tail == Tail::pad
                            ? options.batch_size
                            : std::min(options.batch_size, rows);
  return (shared + options.rank.world - 1) / options.rank.world;
}

/// The options as they are carried out.
LoaderOptions resolved(LoaderOptions options) {
  if (options.per_sample || options.prefetch == 0) options.workers = 0;
  if (options.workers == 0) options.prefetch = 0;
  return options;
}

/// One in the consumer's hands, one on its way back, the rest ahead.
int slots_of(const LoaderOptions& options) {
  return 2 + resolved(options).prefetch;
}

[[noreturn]] void refuse_empty_side(Side side, std::int64_t rows) {
  std::string name = side == Side::train ? "train" : "val";
  throw Error(ErrorKind::request,
              {.code = "loader.empty_side",
               .what = "there is no row to make a batch of",
               .where = "split." + name,
               .why = "none of the " + std::to_string(rows) +
                      " rows falls on the side '" + name + "'",
               .next = "raise split." + name +
                       ", choose another split.by, or "
                       "of arrays name the rows on that side"});
}

[[noreturn]] void refuse_weight() {
  throw Error(ErrorKind::request,
              {.code = "loader.weight",
               .what = "cannot add the weights of padding to a batch",
               .where = "loader.tail = \"pad\"",
               .why = "the rows have a tensor 'weight' of their own",
               .next = "give it another name, or use another tail"});
}

}  // namespace

std::size_t ring_bytes(const LoaderOptions& options, const RowLayout& layout,
                       std::int64_t rows) {
  std::size_t slot =
      slot_offsets(layout, most_rows(options, rows), options.tail == Tail::pad)
          .back();
  return static_cast<std::size_t>(slots_of(options)) * slot;
}

// Workers take pieces of the earliest batch that is not yet complete, so a
// batch is filled by all of them and the first one is there soonest. The worker
// that fills the last piece sends the batch off; the sequencer restores order.
//
// Pieces are given out in order, and a batch is counted when its plan is
// complete. So an error has a number: that of the batch which could not be
// planned or filled, or else (a worker could not begin, say) that of the first
// batch which is not planned. No more batches are planned then, those before
// the error are completed by the workers that are left, and the consumer gets
// the error after them, whatever the number of workers. Where no worker is
// left, the closed sequencer still holds the error. An end without an error
// before `options.batches` is an internal error.
//
// Lock order: `mutex`, then the ring's or the sequencer's own. No source is
// called, no event waited for and no batch filled under `mutex`.
struct Loader::State {
  /// A piece of work: rows [begin, end) of a slot.
  struct Piece {
    std::shared_ptr<Slot> slot;
    std::int64_t begin = 0, end = 0;
  };

  const std::shared_ptr<const Dataset> rows;
  const LoaderOptions options;
  Device& device;
  const Order order;
  const bool resident;
  FillMeters meters;
  StageMeter deliver{"deliver", 1};

  const std::shared_ptr<SlotRing> ring = std::make_shared<SlotRing>();
  Sequencer<std::shared_ptr<Slot>> complete;
  std::atomic<std::int64_t> wait_order{0};

  Mutex mutex;
  Condition changed;
  Position next_plan PENSTOCK_GUARDED_BY(mutex);
  std::int64_t planned PENSTOCK_GUARDED_BY(mutex) = 0;
  std::shared_ptr<Slot> current PENSTOCK_GUARDED_BY(mutex);
  std::int64_t current_row PENSTOCK_GUARDED_BY(mutex) = 0;
  bool opening PENSTOCK_GUARDED_BY(mutex) = false;
  std::int64_t delivered PENSTOCK_GUARDED_BY(mutex) = 0;
  bool planning_ended PENSTOCK_GUARDED_BY(mutex) = false;

  // The consumer's.
  Position position;
  int slots = 0;
  std::exception_ptr broken;              // workers == 0
  std::unique_ptr<Filler> inline_filler;  // workers == 0
  std::unique_ptr<Stage> stage;           // last: its threads use all the above

  State(std::shared_ptr<const Dataset> of, const LoaderOptions& given,
        Device& on)
      : rows(std::move(of)),
        options(resolved(given)),
        device(on),
        order(order_of(options, *rows)),
        resident(rows->plan().tier == Tier::device &&
                 device.memory_kind() != MemoryKind::cpu),
        meters(options.workers, options.per_sample),
        next_plan(options.start),
        position(options.start) {}

  void add_slot() {
    bool staged = device.memory_kind() != MemoryKind::cpu && !resident;
    std::shared_ptr<Slot> slot =
        make_slot(rows->layout(), most_rows(options, order.samples),
                  options.tail == Tail::pad, staged, device);
    slot->ring = ring;
    slot->rows = rows;
    ring->give_back(std::move(slot));
    ++slots;
  }

  bool no_more() const PENSTOCK_REQUIRES(mutex) {
    return options.batches >= 0 && planned == options.batches;
  }

  /// Counts the batch when nothing can throw any more.
  void plan_next(Slot& slot) PENSTOCK_REQUIRES(mutex) {
    BusyScope busy(meters.plan);
    plan_step(order, options.rank, next_plan, slot.plan);
    slot.ids.clear();
    for (const penstock::Piece& piece : slot.plan.pieces)
      slot.ids.push_back(piece.sample);
    rows->select(options.side, slot.ids);
    auto count = static_cast<std::int64_t>(slot.ids.size());
    for (NamedTensor& tensor : slot.tensors) tensor.view.shape[0] = count;
    slot.rows_left = count;
    next_plan = next_position(order, next_plan);
    slot.number = planned++;
    meters.plan.add_items(count, 0);
  }

  // A gather on the device is one launch; on the host the rows are shared out.
  std::int64_t piece_rows(std::int64_t all) const {
    if (resident || options.workers < 2 || rows->whole_batches()) return all;
    return std::max<std::int64_t>(
        32, (all + options.workers - 1) / options.workers);
  }

  Piece next_piece() PENSTOCK_REQUIRES(mutex) {
    auto all = static_cast<std::int64_t>(current->ids.size());
    std::int64_t end = std::min(all, current_row + piece_rows(all));
    Piece piece{current, current_row, end};
    current_row = end;
    if (end == all) {
      current.reset();
      changed.notify_all();
    }
    return piece;
  }

  /// Nullopt when there is nothing left to do.
  std::optional<Piece> take_piece() {
    Lock lock(mutex);
    for (;;) {
      if (current != nullptr) return next_piece();
      if (planning_ended || no_more()) return std::nullopt;
      bool far_enough = planned - delivered >= options.prefetch;
      if (opening || far_enough) {
        Nanoseconds asked = wall_clock().now();
        changed.wait(mutex);
        if (far_enough)
          last_stage().add_blocked_put(wall_clock().now() - asked);
        continue;
      }
      begin_batch();
    }
  }

  void begin_batch() PENSTOCK_REQUIRES(mutex) {
    opening = true;  // for good where this throws: planning ends then
    std::shared_ptr<Slot> slot;
    {
      Unlock unlock(mutex);
      slot = open_slot();
    }
    if (slot != nullptr && !planning_ended) {
      plan_next(*slot);
      current = std::move(slot);
      current_row = 0;
    }
    opening = false;
    changed.notify_all();
  }

  /// Waits for a free slot that its readers have really finished with; null
  /// when the loader ends.
  std::shared_ptr<Slot> open_slot() {
    Nanoseconds asked = wall_clock().now();
    std::shared_ptr<Slot> slot = ring->take();
    if (slot != nullptr) slot->settle();
    last_stage().add_blocked_put(wall_clock().now() - asked);
    return slot;
  }

  StageMeter& last_stage() {
    if (kept()) return meters.gather;
    for (StageMeter* stage : {&meters.map, &meters.pack})
      if (stage->numbers().items > 0) return *stage;
    return meters.read;
  }
  bool kept() const { return rows->plan().tier != Tier::none; }

  /// True for whoever filled the last rows.
  bool rows_done(Slot& slot, std::int64_t count) {
    Lock lock(mutex);
    slot.rows_left -= count;
    return slot.rows_left == 0;
  }

  void work() {
    Filler filler(*rows, device, meters, options.per_sample);
    while (std::optional<Piece> piece = take_piece()) {
      Slot& slot = *piece->slot;
      try {
        filler.fill(slot, piece->begin, piece->end);
        if (!rows_done(slot, piece->end - piece->begin)) continue;
        filler.send(slot);
        if (!complete.put(slot.number, piece->slot)) return;
      } catch (...) {
        complete.put_error(slot.number,
                           named_error(std::current_exception(), "loader"));
        abandon();
        filler.settle();
        return;
      }
    }
  }

  /// A worker ended by an error that belongs to no piece. What is planned is
  /// still completed by the others.
  void fail(std::exception_ptr error) {
    std::int64_t unplanned = end_planning();
    complete.put_error(unplanned, std::move(error));
  }

  /// Returns the number of the first batch that will never be planned.
  std::int64_t end_planning() {
    Lock lock(mutex);
    planning_ended = true;
    changed.notify_all();
    ring->close();
    return planned;
  }

  /// Leaves the pieces of the current batch too, which nobody will take.
  void abandon() {
    end_planning();
    std::shared_ptr<Slot> left;  // goes without the lock
    Lock lock(mutex);
    left.swap(current);
  }

  std::shared_ptr<Slot> fill_here() {
    if (broken) std::rethrow_exception(broken);
    {
      Lock lock(mutex);
      if (no_more()) return nullptr;
    }
    std::shared_ptr<Slot> slot;  // goes after what is queued on it has ended
    try {
      if (inline_filler == nullptr)
        inline_filler =
            std::make_unique<Filler>(*rows, device, meters, options.per_sample);
      slot = open_slot();
      {
        Lock lock(mutex);
        plan_next(*slot);
      }
      inline_filler->fill(*slot, 0, std::ssize(slot->ids));
      inline_filler->send(*slot);
    } catch (...) {
      broken = named_error(std::current_exception(), "loader");
      if (inline_filler != nullptr) inline_filler->settle();
      std::rethrow_exception(broken);
    }
    Lock lock(mutex);
    ++delivered;
    return slot;
  }

  /// No batch is an end only after the last one that was asked for.
  void check_end() {
    Lock lock(mutex);
    if (options.batches >= 0 && delivered == options.batches) return;
    std::string of = options.batches < 0
                         ? " of a loader without an end"
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
    std::optional<std::shared_ptr<Slot>> taken = complete.take();
    if (!taken) return nullptr;
    add_wait(asked, out_of_order);
    Lock lock(mutex);
    ++delivered;
    changed.notify_one();
    return std::move(*taken);
  }

  /// Without a free slot there would be no next batch, ever.
  void keep_a_slot_free() {
    if (ring->lent() < slots) return;
    log(LogLevel::warning,
        "the loop holds " + std::to_string(slots) +
            " batches at once: the ring grows by one; destroy a batch when "
            "its step is queued, or raise 'loader.prefetch'");
    add_slot();
  }
};

Loader::Loader(std::shared_ptr<const Dataset> rows,
               const LoaderOptions& options, Device& device)
    : state_(std::make_unique<State>(std::move(rows), options, device)) {
  State& s = *state_;
  PENSTOCK_ASSERT(!options.per_sample || !s.kept(),
                  "a query per sample reads from the source");
  if (s.order.samples == 0) refuse_empty_side(options.side, s.rows->rows());
  for (const TensorSpec& tensor : s.rows->layout().tensors)
    if (options.tail == Tail::pad && tensor.name == kWeight) refuse_weight();
  penstock::steps_per_epoch(s.order);  // refuses an epoch without a step
  while (s.slots < slots_of(s.options)) s.add_slot();
  if (s.options.workers == 0) return;
  s.stage = std::make_unique<Stage>(Stage::Options{
      .name = "loader",
      .workers = s.options.workers,
      .body = [&s](int) { s.work(); },
      .failed = [&s](std::exception_ptr error) { s.fail(std::move(error)); },
      .last = [&s] { s.complete.close(); }});
}

Loader::~Loader() {
  state_->abandon();
  state_->complete.close();
  state_->stage.reset();  // joins
}

std::optional<Batch> Loader::next() {
  State& s = *state_;
  s.keep_a_slot_free();
  std::shared_ptr<Slot> slot =
      s.options.workers == 0 ? s.fill_here() : s.wait_for_next();
  if (slot == nullptr) {
    s.check_end();
    return std::nullopt;
  }
  s.ring->lend(*slot);
  s.deliver.add_items(std::ssize(slot->ids), 0);
  s.position = next_position(s.order, slot->plan.at);
  return Batch(std::move(slot));
}

std::optional<Batch> Loader::next(Stream& stream) {
  std::optional<Batch> batch = next();
  if (batch) batch->wait_on(stream);
  return batch;
}

bool Loader::ready_within(Nanoseconds time) {
  if (state_->options.workers == 0) return true;
  state_->keep_a_slot_free();
  return state_->ready_within(time);
}

Position Loader::position() const { return state_->position; }

std::int64_t Loader::steps_per_epoch() const {
  return penstock::steps_per_epoch(state_->order);
}

std::vector<StageNumbers> Loader::stages() const {
  const State& s = *state_;
  std::vector<StageNumbers> stages = {s.meters.plan.numbers()};
  for (const StageMeter* stage :
       {&s.meters.read, &s.meters.prepare, &s.meters.pack, &s.meters.gather,
        &s.meters.map})
    if (StageNumbers numbers = stage->numbers(); numbers.items > 0)
      stages.push_back(std::move(numbers));
  stages.push_back(s.deliver.numbers());
  return stages;
}

Nanoseconds Loader::wait_order() const {
  return Nanoseconds(state_->wait_order.load());
}

}  // namespace penstock
