#include "penstock/loader/loader.h"

#include <algorithm>

#include "penstock/loader/loader_state.h"
#include "penstock/loader/targets.h"

namespace penstock {

Loader::Loader(std::shared_ptr<const Dataset> dataset,
               const LoaderOptions& options, Device& device)
    : state_(
          std::make_unique<LoaderState>(std::move(dataset), options, device)) {
  LoaderState& state = *state_;
  const LoaderSetup& setup = state.setup;
  PENSTOCK_ASSERT(!options.per_sample || !setup.kept,
                  "\"read\": \"per_sample\" reads from the source");
  check(setup.options, *setup.dataset);
  if (setup.queues && !queue_on(setup.options.operations, device.memory_kind()))
    refuse_operation("loader.operations",
                     "one of the operations runs on the host, but the rows are "
                     "in device memory",
                     setup.resident ? "set \"loader.cache\": \"ram\""
                                    : "prepare the data set so that the host "
                                      "finishes its samples");
  penstock::steps_per_epoch(setup.order);  // refuses an epoch without a step
  state.slots.grow_to(slots_of(setup.options));
  if (!setup.inlined) state.start();
}

Loader::~Loader() = default;

std::optional<Batch> Loader::next() {
  std::shared_ptr<Slot> slot = state_->next();
  if (slot == nullptr) return std::nullopt;
  state_->slots.lend(*slot);
  Batch batch(slot);  // gives the slot back where its turn is an error's
  state_->delivery.count(*slot, state_->setup.order);
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
  const LoaderSetup& setup = state_->setup;
  check_targets(to, setup.maker.tensors(),
                most_rows(setup.options, setup.order.samples), setup.device);
  refuse_capture(stream);
  if (setup.inlined && setup.on_host()) {
    const Slot* slot = state_->next_into(to);
    if (slot == nullptr) return std::nullopt;
    return FilledBatch{.at = slot->plan.at,
                       .rows = std::ssize(slot->plan.bin_ends),
                       .ids = slot->ids,
                       .rejected = slot->rejected};
  }
  std::optional<Batch> batch = next();
  if (!batch) return std::nullopt;
  if (streams == nullptr) return copied(*std::move(batch), to, stream);
  Lock lock(*streams);
  return copied(*std::move(batch), to, stream);
}

bool Loader::ready_within(Nanoseconds time) {
  if (state_->setup.inlined) return true;
  state_->slots.keep_one_free();
  return state_->delivery.ready_within(time);
}

std::optional<LoaderThreads> Loader::threads() const {
  if (state_->setup.inlined) return std::nullopt;
  return state_->threads;
}

void Loader::set_threads(const LoaderThreads& to) {
  PENSTOCK_ASSERT(!state_->setup.inlined && to.workers > 0 && to.prefetch > 0 &&
                      (to.readers > 0 || state_->setup.readers == 0),
                  "a loader that has threads keeps one of each kind");
  state_->set_threads(to);
}

const std::vector<BatchTensor>& Loader::tensors() const {
  return state_->setup.maker.tensors();
}

Position Loader::position() const { return state_->delivery.position(); }

std::int64_t Loader::steps_per_epoch() const {
  return penstock::steps_per_epoch(state_->setup.order);
}

std::vector<StageNumbers> Loader::stages() const {
  const LoaderState& state = *state_;
  const FillMeters& meters = state.meters;
  std::vector<StageNumbers> stages = {state.numbers_of(meters.plan)};
  for (const StageMeter* stage :
       {&meters.read, &meters.prepare, &meters.pack, &meters.gather,
        &meters.map, &meters.on_device})
    if (StageNumbers numbers = state.numbers_of(*stage); numbers.items > 0)
      stages.push_back(std::move(numbers));
  stages.push_back(state.delivery.numbers());
  return stages;
}

Nanoseconds Loader::wait_order() const { return state_->delivery.wait_order(); }

}  // namespace penstock
