#pragma once

#include <cstdint>
#include <span>

namespace penstock {

/// A loop whose batches are made by workers and handed out in their order.
struct InOrder {
  /// Seconds of making each, over and over; at least one.
  std::span<const double> batch_s;
  int workers = 1;    ///< at least one
  int depth = 1;      ///< batches on their way, for each worker
  double loop_s = 0;  ///< the loop works on each for so long
  /// Batches of an epoch: those of the next one are begun when the loop is done
  /// with it. 0: there is no end.
  std::int64_t epoch = 0;
  /// The workers take turns, as those of torch do; else whichever is free makes
  /// the next batch.
  bool in_turn = false;
};

/// Seconds per batch of that loop in the long run. A slow batch holds up those
/// behind it, and each epoch waits for its first one. A pure function.
double seconds_in_order(const InOrder& loop);

}  // namespace penstock
