#include "penstock/loader/batches.h"

#include <algorithm>
#include <atomic>

#include "penstock/loader/fill.h"
#include "penstock/loader/slot.h"

namespace penstock {

Order order_of(const LoaderOptions& options, const Dataset& dataset) {
  return {.samples = dataset.side(options.side).size(),
          .seed = options.seed,
          .shuffle = options.shuffle,
          .batch_size = options.batch_size,
          .tail = options.tail};
}

namespace {

std::int64_t most_rows(const LoaderOptions& options) {
  return (options.batch_size + options.rank.world - 1) / options.rank.world;
}

}  // namespace

std::size_t slot_bytes(const LoaderOptions& options, const RowLayout& layout) {
  return slot_offsets(layout, most_rows(options), options.tail == Tail::pad)
      .back();
}

// Workers take pieces of the earliest batch that is not yet complete, so a
// batch is filled by all of them and the first one is there soonest. Whoever
// fills the last piece sends the batch off; the sequencer restores order.
struct Loader::State {
  std::shared_ptr<const Dataset> dataset;
  LoaderOptions options;
  Order order;
  std::int64_t piece_rows = 0;
  Filler::Meters meters;
  StageMeter deliver{"deliver", 1};

  std::shared_ptr<SlotRing> ring = std::make_shared<SlotRing>();
  Sequencer<std::shared_ptr<Slot>> complete;
  std::atomic<std::int64_t> wait_order{0};

  Mutex mutex;
  Condition changed;
  Position next_plan PENSTOCK_GUARDED_BY(mutex);
  std::int64_t planned PENSTOCK_GUARDED_BY(mutex) = 0;
  std::shared_ptr<Slot> current PENSTOCK_GUARDED_BY(mutex);
  std::int64_t current_row PENSTOCK_GUARDED_BY(mutex) = 0;
  bool opening PENSTOCK_GUARDED_BY(mutex) = false;
  bool closed PENSTOCK_GUARDED_BY(mutex) = false;

  Position position;                      // of the consumer
  std::unique_ptr<Filler> inline_filler;  // workers == 0
  std::unique_ptr<Stage> stage;           // last: its threads use all the above

  State(std::shared_ptr<const Dataset> set, const LoaderOptions& given)
      : dataset(std::move(set)),
        options(given),
        order(order_of(given, *dataset)),
        meters(std::max(1, given.workers), given.per_sample) {}

  /// A piece of work: rows [begin, end) of a slot.
  struct Piece {
    std::shared_ptr<Slot> slot;
    std::int64_t begin = 0, end = 0;
  };

  /// Makes the plan of the next batch in `slot`; false when there is no more.
  bool plan_next(Slot& slot) PENSTOCK_REQUIRES(mutex) {
    if (options.batches >= 0 && planned == options.batches) return false;
    BusyScope busy(meters.plan);
    plan_step(order, options.rank, next_plan, slot.plan);
    next_plan = next_position(order, next_plan);
    slot.number = planned++;
    slot.ids.clear();
    const SideIndex& side = dataset->side(options.side);
    for (const penstock::Piece& piece : slot.plan.pieces)
      slot.ids.push_back(piece.sample < 0 ? -1 : side.select(piece.sample));
    auto rows = static_cast<std::int64_t>(slot.ids.size());
    for (NamedTensor& tensor : slot.tensors) tensor.view.shape[0] = rows;
    slot.rows_left = rows;
    meters.plan.add_items(rows, 0);
    return true;
  }

  std::optional<Piece> take_piece() {
    Lock lock(mutex);
    for (;;) {
      if (closed) return std::nullopt;
      if (current != nullptr) {
        std::int64_t rows = static_cast<std::int64_t>(current->ids.size());
        std::int64_t end = std::min(rows, current_row + piece_rows);
        Piece piece{current, current_row, end};
        current_row = end;
        if (end == rows) {
          current.reset();
          changed.notify_all();
        }
        return piece;
      }
      if (opening) {
        changed.wait(mutex);
        continue;
      }
      if (options.batches >= 0 && planned == options.batches)
        return std::nullopt;
      opening = true;
      mutex.unlock();
      std::shared_ptr<Slot> slot = open_slot();
      mutex.lock();
      opening = false;
      changed.notify_all();
      if (slot == nullptr) return std::nullopt;
      plan_next(*slot);
      current = std::move(slot);
      current_row = 0;
    }
  }

  /// Waits for a free slot that its consumer has really finished with.
  std::shared_ptr<Slot> open_slot() {
    Nanoseconds asked = wall_clock().now();
    std::shared_ptr<Slot> slot = ring->take();
    if (slot != nullptr) slot->consumed.wait();
    meters.gather.add_blocked_put(wall_clock().now() - asked);
    return slot;
  }

  /// True for whoever filled the last rows.
  bool rows_done(Slot& slot, std::int64_t rows) {
    Lock lock(mutex);
    slot.rows_left -= rows;
    return slot.rows_left == 0;
  }

  void work(Filler& filler) {
    while (std::optional<Piece> piece = take_piece()) {
      filler.fill(*piece->slot, piece->begin, piece->end);
      if (!rows_done(*piece->slot, piece->end - piece->begin)) continue;
      filler.send(*piece->slot);
      std::int64_t number = piece->slot->number;
      if (!complete.put(number, std::move(piece->slot))) return;
    }
  }

  void close() {
    {
      Lock lock(mutex);
      closed = true;
      changed.notify_all();
    }
    ring->close();
  }
};

Loader::Loader(std::shared_ptr<const Dataset> dataset,
               const LoaderOptions& options, Device& device)
    : state_(std::make_unique<State>(std::move(dataset), options)) {
  State& s = *state_;
  if (options.per_sample) s.options.workers = 0;
  PENSTOCK_ASSERT(!options.per_sample || s.dataset->table() == nullptr,
                  "a query per sample reads from the source");
  penstock::steps_per_epoch(s.order);  // refuses an epoch without a step
  s.position = options.start;
  {
    Lock lock(s.mutex);
    s.next_plan = options.start;
  }
  bool resident = s.dataset->plan().tier == Tier::device;
  std::int64_t rows = most_rows(options);
  int workers = s.options.workers;
  // A gather on the device is one launch; on the host the rows are shared out.
  s.piece_rows =
      resident || workers < 2
          ? rows
          : std::max<std::int64_t>(32, (rows + workers - 1) / workers);
  bool staged = device.memory_kind() != MemoryKind::cpu && !resident;
  // One slot in the consumer's hands, one on its way back, the rest ahead.
  int slots = 2 + (workers > 0 ? std::max(1, options.prefetch) : 0);
  for (int i = 0; i < slots; ++i) {
    std::shared_ptr<Slot> slot = make_slot(
        s.dataset->layout(), rows, options.tail == Tail::pad, staged, device);
    slot->ring = s.ring;
    s.ring->give_back(std::move(slot));
  }
  if (workers == 0) {
    s.inline_filler = std::make_unique<Filler>(*s.dataset, device, s.meters,
                                               options.per_sample);
    return;
  }
  s.stage = std::make_unique<Stage>(
      Stage::Options{.name = "loader",
                     .workers = workers,
                     .body =
                         [&s, &device](int) {
                           Filler filler(*s.dataset, device, s.meters, false);
                           s.work(filler);
                         },
                     .failed =
                         [&s](std::exception_ptr error) {
                           s.complete.fail(error);
                           s.close();
                         },
                     .last = [&s] { s.complete.close(); }});
}

Loader::~Loader() {
  state_->close();
  state_->complete.close();
  state_->stage.reset();  // joins
}

std::optional<Batch> Loader::next() {
  State& s = *state_;
  Nanoseconds asked = wall_clock().now();
  std::shared_ptr<Slot> slot;
  if (s.inline_filler != nullptr) {
    slot = s.open_slot();
    {
      Lock lock(s.mutex);
      if (!s.plan_next(*slot)) {
        s.ring->give_back(std::move(slot));
        return std::nullopt;
      }
    }
    s.inline_filler->fill(*slot, 0,
                          static_cast<std::int64_t>(slot->ids.size()));
    s.inline_filler->send(*slot);
  } else {
    bool later_ones_wait = s.complete.waiting() > 0;
    std::optional<std::shared_ptr<Slot>> taken = s.complete.take();
    if (!taken) return std::nullopt;
    slot = std::move(*taken);
    Nanoseconds waited = wall_clock().now() - asked;
    s.deliver.add_blocked_get(waited);
    if (later_ones_wait) s.wait_order.fetch_add(waited.count());
  }
  s.deliver.add_items(static_cast<std::int64_t>(slot->ids.size()), 0);
  s.position = next_position(s.order, slot->plan.at);
  return Batch(std::move(slot));
}

std::optional<Batch> Loader::next(Stream& stream) {
  std::optional<Batch> batch = next();
  if (batch) batch->wait_on(stream);
  return batch;
}

Position Loader::position() const { return state_->position; }

std::int64_t Loader::steps_per_epoch() const {
  return penstock::steps_per_epoch(state_->order);
}

std::vector<StageNumbers> Loader::stages() const {
  const State& s = *state_;
  std::vector<StageNumbers> stages = {s.meters.plan.numbers()};
  if (s.dataset->table() == nullptr) {
    stages.push_back(s.meters.read.numbers());
    stages.push_back(s.meters.prepare.numbers());
  } else {
    stages.push_back(s.meters.gather.numbers());
  }
  stages.push_back(s.deliver.numbers());
  return stages;
}

Nanoseconds Loader::wait_order() const {
  return Nanoseconds(state_->wait_order.load());
}

}  // namespace penstock
