#include "penstock/loader/planner.h"

#include <algorithm>

namespace penstock {

BatchPlanner::BatchPlanner(const Dataset& dataset, const LoaderOptions& options,
                           const Order& order,
                           const std::vector<BatchTensor>& tensors)
    : dataset_(dataset), options_(options), order_(order), tensors_(tensors) {}

void BatchPlanner::plan(Position at, int parts, Slot& slot) const {
  plan_step(order_, options_.rank, at, slot.plan);
  slot.ids.clear();
  for (const SampleRange& range : slot.plan.ranges)
    slot.ids.push_back(range.sample);
  if (dataset_.facts().repeats && slot.plan.occurrences.empty())
    slot.plan.occurrences = slot.ids;  // the ranks
  dataset_.select(options_.side, slot.ids);
  for (std::size_t i = 0; i < slot.ids.size(); ++i)
    slot.plan.ranges[i].sample = slot.ids[i];
  if (const auto& bins = dataset_.facts().bins) bins->expand(slot.plan);
  PENSTOCK_ASSERT(slot.plan.occurrences.empty() ||
                      slot.plan.occurrences.size() == slot.plan.ranges.size(),
                  "samples that come more than once are ranges of their own");
  slot.ids.clear();  // there may be as many ranges as bins, of other samples
  for (const SampleRange& range : slot.plan.ranges)
    slot.ids.push_back(range.sample);
  measure(dataset_, options_.side, tensors_, slot.plan, slot.layout);
  if (options_.batch_bytes > 0 && slot.layout.tensors > options_.batch_bytes)
    refuse_size(slot);
  slot.rejected.clear();
  share_out(parts, slot);
}

// Work is shared by bytes, which is what a row costs: rows that differ in
// length are not shared by their number. An item is large enough to be worth
// waking a thread.
void BatchPlanner::share_out(int parts, Slot& slot) const {
  constexpr std::size_t kLeastRead = 32;                      // rows
  constexpr std::size_t kLeastKept = std::size_t{128} << 10;  // bytes
  const auto rows = static_cast<std::int64_t>(slot.plan.bin_ends.size());
  slot.item_ends.clear();
  bool kept = dataset_.plan().tier != Tier::none;
  if (parts < 2 || dataset_.facts().whole_batches || rows < 2 ||
      (kept && slot.layout.bytes < 2 * kLeastKept)) {
    slot.item_ends.push_back(rows);
    return;
  }
  const BatchLayout::Varying* varying =
      slot.layout.varying.empty() ? nullptr : &slot.layout.varying.front();
  if (varying == nullptr) {
    std::int64_t least = kLeastRead;
    if (kept)
      least = std::max<std::int64_t>(
          least, static_cast<std::int64_t>(kLeastKept) * rows /
                     static_cast<std::int64_t>(slot.layout.bytes));
    std::int64_t each =
        std::max<std::int64_t>(least, (rows + parts - 1) / parts);
    for (std::int64_t end = each; end < rows; end += each)
      slot.item_ends.push_back(end);
    slot.item_ends.push_back(rows);
    return;
  }
  std::int64_t all = varying->elements + rows;  // a row costs something too
  std::int64_t share = (all + parts - 1) / parts, cost = 0;
  std::size_t range = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    auto end = static_cast<std::size_t>(
        slot.plan.bin_ends[static_cast<std::size_t>(row)]);
    for (; range < end; ++range) cost += varying->lengths[range];
    if (++cost < share && row + 1 < rows) continue;
    slot.item_ends.push_back(row + 1);
    cost = 0;
  }
}

void BatchPlanner::refuse_size(const Slot& slot) const {
  std::string longest;
  if (!slot.layout.varying.empty()) {
    const std::vector<std::int32_t>& lengths =
        slot.layout.varying.front().lengths;
    auto most = std::ranges::max_element(lengths) - lengths.begin();
    longest =
        "; its longest sample, " +
        std::to_string(slot.ids[static_cast<std::size_t>(most)]) + ", has " +
        std::to_string(lengths[static_cast<std::size_t>(most)]) + " elements";
  }
  throw Error(
      ErrorKind::request,
      {.code = "loader.batch_bytes",
       .what = "a batch exceeds its size limit",
       .where = "epoch " + std::to_string(slot.plan.at.epoch) + ", step " +
                std::to_string(slot.plan.at.step),
       .why = "the batch takes " + std::to_string(slot.layout.tensors) +
              " bytes, at most " + std::to_string(options_.batch_bytes) +
              " are allowed" + longest,
       .next = "raise the limit, lower 'loader.batch_size', or leave out the "
               "longest samples"});
}

}  // namespace penstock
