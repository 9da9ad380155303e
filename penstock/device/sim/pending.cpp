#include "penstock/device/sim/pending.h"

#include <algorithm>
#include <cstring>

#include "penstock/device/sim/sim.h"

namespace penstock {
namespace {

bool touches(const SimOperation& operation, const Extent& extent) {
  auto overlaps = [&](const Extent& other) { return other.overlaps(extent); };
  return std::ranges::any_of(operation.read, overlaps) ||
         std::ranges::any_of(operation.written, overlaps);
}

void poison(SimOperation& operation) {
  for (const Extent& extent : operation.written)
    std::memset(const_cast<std::byte*>(extent.start),
                std::to_integer<int>(kPoison), extent.size);
  operation.poisoned = true;
}

}  // namespace

void Horizon::reach(std::size_t stream, std::uint64_t number) {
  if (last_.size() <= stream) last_.resize(stream + 1);
  last_[stream] = std::max(last_[stream], number);
}

void Horizon::merge(const Horizon& other) {
  for (std::size_t i = 0; i < other.last_.size(); ++i) reach(i, other.last_[i]);
}

void Pending::add(SimOperation operation) {
  if (!operation.poisoned && !target_in_use(operation)) poison(operation);
  operations_.push_back(std::move(operation));
}

// Effects happen in the order of the calls. That order respects every
// dependency: a stream can only wait for an event that was recorded before, so
// work never comes after work that was queued later.
void Pending::finish(const Horizon& horizon) {
  std::size_t kept = 0;
  for (SimOperation& operation : operations_) {
    if (horizon.covers(operation.stream, operation.number)) {
      operation.effect();
      continue;
    }
    if (&operations_[kept] != &operation)
      operations_[kept] = std::move(operation);
    ++kept;
  }
  if (kept == operations_.size()) return;
  operations_.resize(kept);
  poison_targets();
}

std::size_t Pending::forget(Extent freed) {
  std::size_t before = operations_.size();
  std::erase_if(operations_, [&](const SimOperation& operation) {
    return touches(operation, freed);
  });
  if (before != operations_.size()) poison_targets();
  return before - operations_.size();
}

// True while work that comes before `by` has yet to read or write its target.
// Work that does not come before it gets no such respect: it is in a race.
bool Pending::target_in_use(const SimOperation& by) const {
  return std::ranges::any_of(operations_, [&](const SimOperation& other) {
    return by.after.covers(other.stream, other.number) &&
           std::ranges::any_of(by.written, [&](const Extent& written) {
             return touches(other, written);
           });
  });
}

void Pending::poison_targets() {
  for (SimOperation& operation : operations_)
    if (!operation.poisoned && !target_in_use(operation)) poison(operation);
}

}  // namespace penstock
