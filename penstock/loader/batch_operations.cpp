#include "penstock/loader/batch_operations.h"

#include <algorithm>
#include <set>

#include "penstock/loader/slot.h"

namespace penstock {
namespace {

void check_names(const std::vector<BatchTensor>& tensors) {
  std::set<std::string> seen;
  for (const BatchTensor& tensor : tensors)
    if (!seen.insert(tensor.name).second)
      refuse_operation(
          "loader.operations",
          "a batch would have two tensors named '" + tensor.name + "'",
          "rename a field, or use one operation with 'labels'");
}

/// Rows that hold a sample.
std::vector<std::int64_t> live_rows(const Slot& slot) {
  const std::vector<SampleId> ids = slot.live_ids();
  std::vector<std::int64_t> rows;
  for (std::size_t row = 0; row < ids.size(); ++row)
    if (ids[row] >= 0) rows.push_back(static_cast<std::int64_t>(row));
  return rows;
}

}  // namespace

BatchOperations::BatchOperations(const LoaderOptions& options,
                                 const DatasetFacts& facts)
    : seed_(options.seed), rank_(options.rank.rank) {
  std::vector<Output> all = facts.outputs, added;
  for (const Operation& operation : options.operations) {
    if (options.side != Side::train && !operation.every_side) continue;
    bound_.push_back({.operation = operation.kind->bind(all)});
    for (const Output& output : bound_.back().operation->adds()) {
      all.push_back(output);
      added.push_back(output);
    }
  }
  tensors_ = batch_tensors(facts, options.side, weighted(options), added);
  if (bound_.empty()) return;
  check_names(tensors_);
  auto place_of = [&](const std::string& name) {
    auto found = std::ranges::find(tensors_, name, &BatchTensor::name);
    return static_cast<std::size_t>(found - tensors_.begin());
  };
  for (Bound& bound : bound_) {
    for (std::size_t output : bound.operation->uses())
      bound.tensors.push_back(place_of(all[output].name));
    for (const Output& output : bound.operation->adds())
      bound.tensors.push_back(place_of(output.name));
  }
}

std::size_t BatchOperations::scratch_bytes(std::int64_t rows) const {
  std::size_t most = 0;
  for (const Bound& bound : bound_)
    most = std::max(most, bound.operation->row_bytes());
  return most * static_cast<std::size_t>(rows);
}

template <class Place, class Change>
void BatchOperations::each(const Slot& slot, Place place_of,
                           Change change) const {
  const std::vector<std::int64_t> live = live_rows(slot);
  std::vector<std::byte*> tensors;
  OperationBatch batch{.rows = std::ssize(slot.plan.bin_ends),
                       .live = live,
                       .key = {.seed = seed_,
                               .epoch = slot.plan.at.epoch,
                               .step = slot.plan.at.step,
                               .rank = rank_}};
  for (const Bound& bound : bound_) {
    tensors.clear();
    for (std::size_t t : bound.tensors) tensors.push_back(place_of(t));
    batch.tensors = tensors;
    change(*bound.operation, batch);
    ++batch.key.operation;
  }
}

void BatchOperations::apply(const Slot& slot, OperationScratch& scratch) const {
  each(
      slot, [&](std::size_t tensor) { return slot.fill[tensor]; },
      [&](const BoundOperation& operation, const OperationBatch& batch) {
        operation.apply(batch, scratch);
      });
}

void BatchOperations::queue(const Slot& slot, Stream& stream) const {
  each(
      slot, [&](std::size_t tensor) { return slot.tensors[tensor].view.data; },
      [&](const BoundOperation& operation, const OperationBatch& batch) {
        operation.queue(batch, slot.scratch(), stream);
      });
}

bool queue_on(const std::vector<Operation>& operations, MemoryKind memory) {
  return std::ranges::all_of(operations, [&](const Operation& operation) {
    return operation.kind->queues_on(memory);
  });
}

}  // namespace penstock
