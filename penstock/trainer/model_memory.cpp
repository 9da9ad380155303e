#include "penstock/trainer/model_memory.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "penstock/base/tensor_limit.h"
#include "penstock/trainer/halves.h"
#include "penstock/trainer/stepper_facts.h"
#include "penstock/trainer/torch_memory.h"

namespace penstock {
namespace {

/// The key of a state for what a shortage has changed.
std::string key_of(OomAction action) { return std::string(name_of(action)); }

}  // namespace

ModelMemory::ModelMemory(Model& model, const AdamW& optimizer,
                         const Learning& learning, const StepGraphs& graphs,
                         c10::Device torch, TryRows try_rows)
    : model_(model),
      optimizer_(optimizer),
      learning_(learning),
      graphs_(graphs),
      torch_(torch),
      try_rows_(std::move(try_rows)) {
  micro_ = learning_.micro_batch.value_or(INT64_MAX);
  begin_host_tensor_peak();
}

void ModelMemory::check_limit() const {
  const MemoryByOwner bytes = fixed();
  const std::size_t limit =
      torch_.is_cpu() ? tensor_limit().load() : gpu_tensor_limit().load();
  const auto needed = static_cast<std::size_t>(bytes.total());
  if (needed <= limit) return;
  throw Error(
      ErrorKind::out_of_memory,
      {.code = "trainer.limit_too_low",
       .what = "the model does not fit in memory",
       .where = "device.memory_gib",
       .why = "parameters, gradients and optimizer take " +
              shown_bytes(needed) + ", and the limit is " + shown_bytes(limit),
       .next = "raise device.memory_gib, or use a smaller model"});
}

MemoryByOwner ModelMemory::try_step(std::int64_t rows) {
  most_ = std::max(most_, tensor_peak(torch_));
  tried_ = with_graphs(try_rows_(rows));
  return tried_;
}

MemoryByOwner ModelMemory::fixed() const {
  const ModelFacts& model = model_.facts();
  const std::int64_t learned = bytes_of(model.parameters);
  return {.parameters = (model.bytes > 0 ? model.bytes : learned) +
                        bytes_of(model.buffers),
          .gradients = learning_.accumulate > 1 ? 2 * learned : learned,
          .optimizer =
              bytes_of(optimizer_.state()) + (learning_.ema > 0 ? learned : 0)};
}

MemoryByOwner ModelMemory::by_owner(std::int64_t total) const {
  MemoryByOwner bytes = fixed();
  bytes.activations = std::max<std::int64_t>(0, total - bytes.total());
  return bytes;
}

// A graph's pool stays taken while other steps reach their peak.
MemoryByOwner ModelMemory::with_graphs(std::int64_t most) const {
  return by_owner(most + graphs_.bytes());
}

MemoryByOwner ModelMemory::peak() const {
  const std::int64_t most = std::max(most_, tensor_peak(torch_));
  return most > 0 ? with_graphs(most) : tried_;
}

MemoryByOwner ModelMemory::take_peak() {
  const std::int64_t most = tensor_peak(torch_);
  begin_tensor_peak(torch_);
  most_ = std::max(most_, most);
  return most > 0 ? with_graphs(most) : tried_;
}

bool ModelMemory::give_way(std::int64_t step, std::int64_t rows) {
  check_limit();
  const std::int64_t now = std::min(micro_, rows);
  auto gave = [&](OomAction action) {
    add({.step = step, .from = now, .to = now, .action = action});
    return true;
  };
  if (std::exchange(emptied_at_, step) != step &&
      empty_allocator_cache(torch_) > 0)
    return gave(OomAction::allocator_cache);
  const bool helps = halved_at_ != step || halves_take_less(*this, now);
  if (helps && halve(step, now)) return true;
  if (recompute()) return gave(OomAction::gradient_checkpointing);
  return !helps && halve(step, now);
}

void ModelMemory::follow(const OomEvent& event) {
  if (event.action == OomAction::micro_batch)
    micro_ = std::min(micro_, event.to);
  if (event.action == OomAction::gradient_checkpointing) recompute();
  if (event.action == OomAction::allocator_cache) empty_allocator_cache(torch_);
  add(event);
}

/// False where fewer rows may not go through the model at once.
bool ModelMemory::halve(std::int64_t step, std::int64_t rows) {
  const bool exact = model_.facts().buffers.empty();
  if (rows <= learning_.micro_batch_min ||
      (!exact && learning_.oom == Learning::OnShortage::exact))
    return false;
  micro_ = std::max(learning_.micro_batch_min,
                    static_cast<std::int64_t>(
                        std::bit_floor(static_cast<std::uint64_t>(rows - 1))));
  halved_at_ = step;
  add({.step = step,
       .from = rows,
       .to = micro_,
       .action = OomAction::micro_batch,
       .exact = exact});
  return true;
}

/// False where activations were computed again already, or cannot be.
bool ModelMemory::recompute() {
  const bool begun = model_.begin_recompute();
  recomputes_ |= begun;
  return begun;
}

std::optional<std::int64_t> ModelMemory::row_alone() const {
  if (part_.end - part_.begin != 1) return std::nullopt;
  return part_.begin;
}

void ModelMemory::save(Json& state) const {
  if (micro_ != learning_.micro_batch.value_or(INT64_MAX))
    state[key_of(OomAction::micro_batch)] = micro_;
  if (validation_rows_ != INT64_MAX)
    state[key_of(OomAction::validation_rows)] = validation_rows_;
  if (recomputes_) state[key_of(OomAction::gradient_checkpointing)] = true;
}

void ModelMemory::restore(const Json& state) {
  if (const Json* rows = state.find(key_of(OomAction::micro_batch)))
    micro_ = std::min(micro_, rows->integer());
  if (const Json* rows = state.find(key_of(OomAction::validation_rows)))
    validation_rows_ = std::min(validation_rows_, rows->integer());
  if (state.find(key_of(OomAction::gradient_checkpointing)) != nullptr)
    recompute();
  halved_at_ = emptied_at_ = -1;
}

}  // namespace penstock
