#pragma once

#include <memory>
#include <vector>

#include "penstock/dataset/dataset.h"
#include "penstock/loader/batch_operations.h"
#include "penstock/loader/options.h"
#include "penstock/loader/slot.h"

namespace penstock {

/// Throws the Error(transform) of a bad sample.
[[noreturn]] void refuse_bad_sample(const RejectedSample& bad, Position at);

/// True where a device does what is done to a batch after it is gathered there,
/// or copied.
bool device_finishes(const Dataset& dataset, Side side, const Device& device);

/// Fills slots, and queues what the device does with them. One per thread.
class BatchFiller {
 public:
  BatchFiller(const Dataset& dataset, const BatchOperations& operations,
              const LoaderOptions& options, Device& device, FillMeters& meters);
  ~BatchFiller();

  /// Writes rows [begin, end) of the slot's plan where the slot is filled, and
  /// gives those that were rejected, by row: what `options.on_bad` says was
  /// done to them. Throws Error(transform) where that is to stop.
  /// `read`: what I/O threads have read of them, if anything.
  std::vector<RejectedSample> fill(Slot& slot, std::int64_t begin,
                                   std::int64_t end, ItemRead* read = nullptr);
  /// Called once all rows are filled, before they are copied: what the host
  /// does to whole batches. Sets `slot.filled`.
  void operate(Slot& slot);
  /// Called once the copy is queued, if there is one, perhaps on another
  /// thread: queues what is done on the device, and sets `slot.ready`.
  void finish(Slot& slot);
  /// Waits for all that is queued: afterwards any slot may go. Never throws.
  void settle() noexcept;

 private:
  /// Ranges of a slot, and the rows that they make up.
  struct Part {
    std::size_t first_row, end_row, first_range, end_range;
  };
  FillItem item_of(const Slot& slot, const Part& part, bool on_device = false);
  bool find_places(const Slot& slot, const Part& part, bool on_device,
                   std::vector<TensorPlace>& places) const;
  void add_staged(const Slot& slot, const Part& part, bool on_device,
                  std::vector<TensorPlace>& places) const;
  void queue(const Slot& slot);
  void write_lengths(const Slot& slot, const Part& part) const;
  void write_weights(const Slot& slot, const Part& part) const;
  void clear_padding(const Slot& slot, const BatchTensor& tensor,
                     std::byte* data, const Part& part) const;
  void mask(const Slot& slot, std::size_t range) const;
  SampleId substitute(Slot& slot, std::size_t range);

  const Dataset& dataset_;
  const BatchOperations& operations_;
  const std::vector<BatchTensor>& tensors_;
  const LoaderOptions& options_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<SlotFiller> filler_;
  std::vector<TensorPlace> places_;       // FillItem::to, of the ranges at hand
  std::vector<TensorPlace> host_places_;  // FillItem::on_host
  Faults faults_;
  const std::vector<DeviceField>& device_fields_;
  const bool queues_;  // device_finishes()
  StageMeter& meter_;  // of what is queued for these fields
  OperationScratch scratch_;
  // What the stream holds for fields that the device finishes: a device that
  // is a part charges nothing by itself.
  MemoryCharge held_there_{HeldFor::copies, HeldIn::device, 0};
  MemoryCharge held_pinned_{HeldFor::copies, HeldIn::pinned, 0};
};

}  // namespace penstock
