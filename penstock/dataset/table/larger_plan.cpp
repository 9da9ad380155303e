#include "penstock/dataset/table/larger_plan.h"

#include <algorithm>

namespace penstock {
namespace {

/// A part of the rows that is worth the memory.
constexpr double kLeastPart = 0.1;

/// When the first rows are kept.
std::string shown_begin(const RowsUse& use) {
  const std::string ranks = std::to_string(use.ranks);
  if (use.epochs)
    return use.ranks == 1 ? "when it is first made"
                          : "by each rank when it first gets the row";
  if (use.ranks == 1) return "from the second epoch on";
  return "from epoch " + std::to_string(use.ranks + 1) + " on, by each of " +
         ranks + " ranks, which gets each row about once in " + ranks +
         " epochs";
}

}  // namespace

LargerPlan plan_larger(const LargerRequest& request, const RowsUse& use,
                       const TierLimits& limits) {
  const bool come_again =
      !use.epochs || LargerRows::pays(*use.epochs, use.ranks, use.first_epoch);
  if (!come_again) {
    if (use.ranks == 1 || *use.epochs < 1 + LargerRows::kLeastUses) return {};
    return {.note = request.shown + " is made again in every epoch: each of " +
                    std::to_string(use.ranks) +
                    " ranks gets each row about once in as many epochs, too "
                    "rarely for keeping it to pay off"};
  }
  if (!limits.ram_free || request.bytes == 0) return {};
  const auto there = static_cast<double>(*limits.ram_free);
  const double room =
      kShareOfFree * there - static_cast<double>(request.others);
  const auto all = static_cast<double>(request.bytes);
  const double for_part =
      room - static_cast<double>(request.read_again) / request.sharing;
  const double most = std::max(0.0, all <= room ? room : for_part);
  const std::string takes =
      request.shown + (all <= room ? " takes " : " would take ") +
      shown_bytes(request.bytes) + (use.ranks > 1 ? " in each rank" : "");
  const auto fitting =
      static_cast<std::int64_t>(most / all * static_cast<double>(request.rows));
  const std::string has_room =
      ", of which memory holds " + std::to_string(fitting) + " rows" +
      (request.read_again == 0
           ? ""
           : " in addition to the files, " + shown_bytes(request.read_again));
  if (most < kLeastPart * all)
    return {.note = takes + has_room + ": it is made again in every epoch"};
  const auto kept = static_cast<std::size_t>(most);
  LargerPlan plan{.keeping = LargerRows::Keeping{
                      .epochs = use.epochs,
                      .ranks = use.ranks,
                      .most = kept,
                      .left = static_cast<std::size_t>(
                          (1 - kShareOfFree) * there * request.sharing)}};
  plan.bytes = std::min(kept, request.bytes);
  plan.note = takes +
              (all <= room ? ", which fits in memory: it is kept "
                           : has_room + ": " + shown_bytes(kept) +
                                 " of it are kept, and the rest is made again "
                                 "in every epoch; it is kept ") +
              shown_begin(use) + "; batches stay the same";
  return plan;
}

}  // namespace penstock
