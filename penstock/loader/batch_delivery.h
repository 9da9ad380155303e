#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "penstock/exec/exec.h"
#include "penstock/loader/bad_samples.h"
#include "penstock/loader/loader_setup.h"

namespace penstock {

/// Hands batches to the consumer in their order. Any thread puts a batch or an
/// error; the consumer calls all else.
class BatchDelivery {
 public:
  explicit BatchDelivery(const LoaderSetup& setup)
      : position_(setup.options.start), bad_(setup.options, setup.order) {}

  /// False where no batch is taken any more.
  bool put(const std::shared_ptr<Slot>& slot) {
    return complete_.put(slot->number, slot);
  }
  /// The consumer gets the error in the turn of that batch.
  void put_error(std::int64_t number, std::exception_ptr error) {
    complete_.put_error(number, std::move(error));
  }
  /// Wakes the consumer: no more batches come.
  void close() { complete_.close(); }

  bool ready() { return complete_.ready_within(Nanoseconds(0)); }
  bool ready_within(Nanoseconds time);
  /// The next batch; null after the last. `help` is called before it waits.
  std::shared_ptr<Slot> take(const std::function<void()>& help);
  /// Counts a batch that goes to the consumer. Throws Error(transform), code
  /// data.too_many_bad.
  void count(Slot& slot, const Order& order);
  /// Throws that error again once it was thrown.
  void check() const { bad_.check(); }

  Position position() const { return position_; }
  StageNumbers numbers() const { return meter_.numbers(); }
  /// The time of waiting in which later batches were complete. Any thread.
  Nanoseconds wait_order() const { return Nanoseconds(wait_order_.load()); }

 private:
  void add_wait(Nanoseconds asked, bool out_of_order);

  Sequencer<std::shared_ptr<Slot>> complete_;
  StageMeter meter_{"deliver", 1};
  std::atomic<std::int64_t> wait_order_{0};
  Position position_;
  BadSamples bad_;
};

}  // namespace penstock
