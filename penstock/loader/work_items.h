#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "penstock/dataset/dataset.h"
#include "penstock/loader/slot.h"

namespace penstock {

/// Rows [begin, end) of a slot, to be filled.
struct WorkItem {
  std::shared_ptr<Slot> slot;
  std::int64_t begin = 0, end = 0;
  std::shared_ptr<ItemRead> read = nullptr;  ///< null: there is nothing to read

  /// True when it can be filled without waiting for the source.
  bool ready() const { return read == nullptr || read->done(); }
};

/// Appends the items of a planned slot. `reads`, which may be null, begins to
/// read their rows.
void append_items(const std::shared_ptr<Slot>& slot, ReadAhead* reads,
                  std::vector<WorkItem>& items);

/// Items that nobody has taken yet, in their order. Not thread-safe.
///
/// Who takes an item keeps its read alive; the reads of items that are dropped
/// are left out by the I/O threads.
class WorkItems {
 public:
  bool empty() const { return items_.empty(); }
  /// The number of the first item's batch; there must be one.
  std::int64_t first_batch() const { return items_.front().slot->number; }
  /// Moves them out of `items`, which is empty then and keeps its memory.
  void add(std::vector<WorkItem>& items);
  /// The earliest that is ready; nullopt when none is.
  std::optional<WorkItem> take_ready();
  /// The last one, where it is of batch `number` or a later one. Needs no
  /// memory.
  std::optional<WorkItem> take_last_from(std::int64_t number);

 private:
  std::deque<WorkItem> items_;
};

}  // namespace penstock
