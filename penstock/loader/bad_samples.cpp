#include "penstock/loader/bad_samples.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock {
namespace {

Error refusal(const std::string& found, const std::string& most,
              const RejectedSample& last) {
  return Error(
      ErrorKind::transform,
      {.code = "data.too_many_bad",
       .what = "too many samples cannot be used",
       .where = "sample " + std::to_string(last.sample) + ", " + last.place,
       .why = found + ", " + most + "; this one: " + last.why,
       .next = "correct or remove the bad samples: 'penstock check' lists all "
               "of them"});
}

}  // namespace

std::int64_t BadSamples::most_of(std::int64_t samples, int world) {
  const double share = kShare * static_cast<double>(samples) / world;
  const double most = world == 1 ? share : share + 4 * std::sqrt(share) + 1;
  return std::max<std::int64_t>(1, std::llround(std::ceil(most)));
}

BadSamples::BadSamples(const LoaderOptions& options, const Order& order)
    : most_(options.batches == 1 ? std::numeric_limits<std::int64_t>::max()
                                 : most_of(order.samples, options.rank.world)) {
}

void BadSamples::add(const Slot& slot) {
  any_ = true;
  if (slot.plan.at.epoch != epoch_) in_epoch_ = 0;
  epoch_ = slot.plan.at.epoch;
  std::int64_t next_row = 0;  // after the last bad one
  for (const RejectedSample& bad : slot.rejected) {
    in_a_row_ = bad.row == next_row ? in_a_row_ + 1 : 1;
    next_row = bad.row + 1;
    if (++in_epoch_ > most_)
      refused_ = refusal(
          std::to_string(in_epoch_) + " of epoch " + std::to_string(epoch_),
          "at most " + std::to_string(most_) + " are allowed (1 in 1,000)",
          bad);
    else if (in_a_row_ > kInARow)
      refused_ =
          refusal(std::to_string(in_a_row_) + " in a row",
                  "at most " + std::to_string(kInARow) + " are allowed", bad);
    check();
  }
  if (next_row != std::ssize(slot.ids)) in_a_row_ = 0;
}

}  // namespace penstock
