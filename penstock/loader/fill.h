#pragma once

#include <memory>
#include <vector>

#include "penstock/loader/dataset.h"
#include "penstock/loader/slot.h"

namespace penstock {

/// Fills slots with rows: gathered from the table, or read from the source.
/// One per thread.
class Filler {
 public:
  /// The meters of a loader's stages, shared by its fillers.
  struct Meters {
    Meters(int workers, bool per_sample)
        : plan("plan", workers, "loader"),
          read(per_sample ? "read per sample" : "read", workers, "loader"),
          prepare("prepare", workers, "loader"),
          pack("pack", workers, "loader"),
          gather("gather", workers, "loader") {}
    StageMeter plan, read, prepare, pack, gather;
  };

  Filler(const Dataset& dataset, Device& device, Meters& meters,
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
  void gather(Slot& slot, std::int64_t begin, std::int64_t end);
  void read(Slot& slot, std::int64_t begin, std::int64_t end);
  /// A packed row, or zeros, as row `row` of the slot.
  void write(Slot& slot, std::int64_t row, const std::byte* packed);

  const Dataset& dataset_;
  Meters& meters_;
  const bool per_sample_;
  std::unique_ptr<Stream> stream_;
  std::vector<GatherField> fields_;  // of the slot at hand
  std::unique_ptr<Dataset::RowReader> reader_;
  RawBlock raw_;
  std::vector<std::byte> row_;
  std::vector<SampleId> present_;
};

}  // namespace penstock
