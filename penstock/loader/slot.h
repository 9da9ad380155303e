#pragma once

#include <memory>
#include <vector>

#include "penstock/exec/exec.h"
#include "penstock/loader/batch.h"
#include "penstock/loader/batches.h"

namespace penstock {

class SlotRing;

/// The memory of one batch, used again and again. While it is filled it
/// belongs to the workers, then to a Batch, then to the ring. Its end waits for
/// what is still queued on its memory.
struct Slot {
  Slot() = default;
  ~Slot();
  /// Waits for the work that was queued on the memory: it may be filled again.
  void settle();
  /// Turns the streams that read the memory into events to be waited for. False
  /// when a stream neither takes an event nor ends: the memory must stay.
  bool end_reading() noexcept;
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  Buffer host;    ///< pinned; empty when rows go straight to `target`
  Buffer target;  ///< where the consumer reads
  std::vector<std::size_t> offsets;  ///< of each tensor, in host and target
  std::vector<NamedTensor> tensors;
  std::vector<SampleId> ids;
  /// Weights on their way to a device that gathers the rest by itself.
  std::vector<float> weights;
  Plan plan;
  std::int64_t number = 0;     ///< counts batches from the loader's start
  std::int64_t rows_left = 0;  ///< to be filled; guarded by the loader
  Event ready;                 ///< the data is on the device
  std::vector<std::shared_ptr<Stream>> readers;  ///< that waited for `ready`
  std::vector<Event> read;  ///< passed when the readers before are done
  bool lent = false;        ///< in the consumer's hands
  std::weak_ptr<SlotRing> ring;
  /// Work that is queued on the memory reads them.
  std::shared_ptr<const Dataset> rows;

  std::byte* fill_at() const {
    return host.data() != nullptr ? host.data() : target.data();
  }
};

/// The free slots of a loader, and the count of those that are lent.
/// Thread-safe. Batches that outlive their loader keep their slot alive; the
/// ring just does not get it back.
class SlotRing {
 public:
  /// Waits for a slot; null when closed.
  std::shared_ptr<Slot> take();
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

/// The tensor that tells padding from rows: 0 and 1.
inline constexpr const char* kWeight = "weight";

/// A slot with room for `rows` rows. `staged`: filled on the host, then copied.
std::shared_ptr<Slot> make_slot(const RowLayout& layout, std::int64_t rows,
                                bool weights, bool staged, Device& device);

/// Where each tensor starts in a slot, and the slot's size at the end.
std::vector<std::size_t> slot_offsets(const RowLayout& layout,
                                      std::int64_t rows, bool weights);

}  // namespace penstock
