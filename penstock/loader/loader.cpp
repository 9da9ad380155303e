#include "penstock/loader/loader.h"

#include <algorithm>

#include "penstock/loader/loader_state.h"

namespace penstock {

Loader::Loader(std::shared_ptr<const Dataset> dataset,
               const LoaderOptions& options, Device& device)
    : state_(
          std::make_unique<LoaderState>(std::move(dataset), options, device)) {
  LoaderState& s = *state_;
  PENSTOCK_ASSERT(!options.per_sample || !s.kept,
                  "\"read\": \"per_sample\" reads from the source");
  check(s.options, *s.dataset);
  if (s.queues && !queue_on(s.options.operations, device.memory_kind()))
    refuse_operation(
        "loader.operations",
        "one of the operations runs on the host, but the rows are in device "
        "memory",
        s.resident
            ? "set \"loader.cache\": \"ram\""
            : "prepare the data set so that the host finishes its samples");
  penstock::steps_per_epoch(s.order);  // refuses an epoch without a step
  while (s.slots < slots_of(s.options)) s.add_slot();
  if (s.inlined) return;
  if (s.readers > 0)
    s.reads = s.dataset->open_read_ahead(
        {.threads = s.readers, .meter = s.meters.read, .arrived = [&s] {
           s.rows_arrived();
         }});
  s.stage = std::make_unique<Stage>(Stage::Options{
      .name = "loader",
      .workers = s.options.workers,
      .body = [&s](int) { s.work(); },
      .failed = [&s](std::exception_ptr error) { s.fail(std::move(error)); },
      .last = [&s] { s.complete.close(); }});
}

Loader::~Loader() {
  state_->abandon(0);
  state_->complete.close();
  state_->stage.reset();  // joins
}

std::optional<Batch> Loader::next() {
  LoaderState& s = *state_;
  s.bad.check();
  s.keep_a_slot_free();
  std::shared_ptr<Slot> slot = s.inlined ? s.fill_here() : s.wait_for_next();
  if (slot == nullptr) {
    s.check_end();
    return std::nullopt;
  }
  s.ring->lend(*slot);
  Batch batch(slot);  // gives the slot back where its turn is an error's
  s.deliver_slot(*slot);
  return batch;
}

std::optional<Batch> Loader::next(Stream& stream) {
  refuse_capture(stream);
  std::optional<Batch> batch = next();
  if (batch) batch->wait_on(stream);
  return batch;
}

std::optional<FilledBatch> Loader::next_into(std::span<const TensorView> to,
                                             Stream& stream, Mutex* streams) {
  LoaderState& s = *state_;
  bool direct = s.inlined && s.on_host();
  check_targets(to, s.maker.tensors(), most_rows(s.options, s.order.samples),
                s.device);
  refuse_capture(stream);
  if (direct) {
    s.bad.check();
    if (!s.fill_direct(to)) {
      s.check_end();
      return std::nullopt;
    }
    s.deliver_slot(s.direct);
    return FilledBatch{.at = s.direct.plan.at,
                       .rows = std::ssize(s.direct.plan.bin_ends),
                       .ids = s.direct.ids,
                       .rejected = s.direct.rejected};
  }
  std::optional<Batch> batch = next();
  if (!batch) return std::nullopt;
  if (streams == nullptr) return copied(*std::move(batch), to, stream);
  Lock lock(*streams);
  return copied(*std::move(batch), to, stream);
}

bool Loader::ready_within(Nanoseconds time) {
  if (state_->inlined) return true;
  state_->keep_a_slot_free();
  return state_->ready_within(time);
}

std::optional<LoaderThreads> Loader::threads() const {
  if (state_->inlined) return std::nullopt;
  return state_->threads;
}

void Loader::set_threads(const LoaderThreads& to) {
  PENSTOCK_ASSERT(!state_->inlined && to.workers > 0 && to.prefetch > 0 &&
                      (to.readers > 0 || state_->readers == 0),
                  "a loader that has threads keeps one of each kind");
  state_->set_threads(to);
}

const std::vector<BatchTensor>& Loader::tensors() const {
  return state_->maker.tensors();
}

Position Loader::position() const { return state_->position; }

std::int64_t Loader::steps_per_epoch() const {
  return penstock::steps_per_epoch(state_->order);
}

std::vector<StageNumbers> Loader::stages() const {
  const LoaderState& s = *state_;
  std::vector<StageNumbers> stages = {s.numbers_of(s.meters.plan)};
  for (const StageMeter* stage :
       {&s.meters.read, &s.meters.prepare, &s.meters.pack, &s.meters.gather,
        &s.meters.map, &s.meters.on_device})
    if (StageNumbers numbers = s.numbers_of(*stage); numbers.items > 0)
      stages.push_back(std::move(numbers));
  stages.push_back(s.deliver.numbers());
  return stages;
}

Nanoseconds Loader::wait_order() const {
  return Nanoseconds(state_->wait_order.load());
}

}  // namespace penstock
