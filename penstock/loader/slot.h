#pragma once

#include <memory>
#include <vector>

#include "penstock/dataset/dataset.h"
#include "penstock/exec/exec.h"
#include "penstock/loader/batch.h"

namespace penstock {

class SlotRing;

/// The memory of one batch, reused. While it is filled it belongs to the
/// workers, then to a Batch, then to the ring. Its destructor waits for what is
/// still queued on its memory.
struct Slot {
  Slot() = default;
  ~Slot();
  /// Waits for the work that was queued on the memory: it may be filled again.
  void settle();
  /// Turns the streams that read the memory into events to be waited for. False
  /// when a stream neither takes an event nor ends: the memory must stay.
  bool end_reading() noexcept;
  /// The first of the plan's ranges that make up this row and those after it.
  std::size_t first_range(std::int64_t row) const {
    return row == 0 ? std::size_t{0}
                    : static_cast<std::size_t>(
                          plan.bin_ends[static_cast<std::size_t>(row) - 1]);
  }
  /// The sample of each range that is neither padding nor masked; else -1.
  std::vector<SampleId> live_ids() const;
  /// Memory of the device for queued work: `layout.scratch` bytes.
  std::byte* scratch() const { return target.data() + layout.bytes; }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  /// Pinned: what is copied to `target` from the host, all of it or, where the
  /// device gathers the rows, the weights. Empty where the host is the device.
  Buffer host;
  Buffer target;                                ///< where the consumer reads
  std::size_t copied_at = 0, copied_bytes = 0;  ///< of `target`
  BatchLayout layout;
  /// Where each tensor is filled, on the host; null where the device makes it.
  std::vector<std::byte*> fill;
  std::vector<NamedTensor> tensors;
  std::vector<SampleId> ids;
  std::vector<RejectedSample> rejected;  ///< guarded by the loader
  Plan plan;
  std::vector<std::int64_t> item_ends;  ///< rows, of each item of work
  std::int64_t number = 0;     ///< counts batches from the loader's start
  std::int64_t rows_left = 0;  ///< to be filled; guarded by the loader
  Event filled;                ///< what was queued while it was filled is done
  Event copied;                ///< what was filled on the host is on the device
  Event ready;                 ///< the data is on the device
  std::vector<std::shared_ptr<Stream>> readers;  ///< that waited for `ready`
  std::vector<Event> read;  ///< passed when the readers before are done
  bool lent = false;        ///< in the consumer's hands
  std::weak_ptr<SlotRing> ring;
};

/// The free slots of a loader, and the count of those that are lent.
/// Thread-safe. Batches that outlive their loader keep their slot alive; the
/// ring just does not get it back.
class SlotRing {
 public:
  /// Waits for a slot; null when closed.
  std::shared_ptr<Slot> take();
  /// The same without waiting: null when none is free.
  std::shared_ptr<Slot> try_take();
  void give_back(std::shared_ptr<Slot> slot);
  /// A slot goes to the consumer, and comes back (by give_back() too).
  void lend(Slot& slot);
  /// Slots in the consumer's hands.
  int lent() const;
  void close();

 private:
  mutable Mutex mutex_;
  Condition returned_;
  int lent_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  Ring<std::shared_ptr<Slot>> free_ PENSTOCK_GUARDED_BY(mutex_);
  bool closed_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

/// Makes the slots of a loader, and prepares each for the batch that was
/// planned in it. Immutable, so thread-safe.
class SlotMaker {
 public:
  /// `staged`: filled on the host, then copied; else only the weights are.
  SlotMaker(std::vector<BatchTensor> tensors, bool staged, Device& device)
      : tensors_(std::move(tensors)), staged_(staged), device_(device) {}

  const std::vector<BatchTensor>& tensors() const { return tensors_; }
  /// With room for a batch of such a size, with `rows` rows.
  std::shared_ptr<Slot> make(const BatchLayout& most, std::int64_t rows) const;
  /// Gives each tensor its place and its shape, in memory that grows where it
  /// is too small. Call it when `slot.layout` is measured.
  void carve(Slot& slot) const;

 private:
  void reserve(Slot& slot, const BatchLayout& size) const;

  const std::vector<BatchTensor> tensors_;
  const bool staged_;
  Device& device_;
};

}  // namespace penstock
