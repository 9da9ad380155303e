#pragma once

#include <memory>
#include <vector>

#include "penstock/dataset/dataset.h"
#include "penstock/loader/slot.h"

namespace penstock {

/// Fills slots and sends them off. One per thread.
class Filler {
 public:
  Filler(const Dataset& rows, Device& device, FillMeters& meters,
         bool per_sample);
  ~Filler();

  /// Writes rows [begin, end) of the slot's plan where the slot is filled.
  void fill(Slot& slot, std::int64_t begin, std::int64_t end);
  /// Called once all rows are filled: queues the copy to the device, if any,
  /// and sets `slot.ready`.
  void send(Slot& slot);
  /// Waits for all that is queued: afterwards any slot may go. Never throws.
  void settle() noexcept;

 private:
  const RowLayout& layout_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<RowFiller> rows_;
  std::vector<std::byte*> tensors_;  // of the rows at hand
};

}  // namespace penstock
