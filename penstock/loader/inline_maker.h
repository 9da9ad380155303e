#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "penstock/loader/copy_line.h"
#include "penstock/loader/slot_supply.h"

namespace penstock {

/// Makes each batch on the consumer's thread when it is asked for: with 0
/// workers, and where a batch is copied faster than a thread is woken. After an
/// error every call throws the same error.
class InlineMaker {
 public:
  InlineMaker(const LoaderSetup& setup, SlotSupply& slots, FillMeters& meters,
              CopyLine& copies);

  /// The next batch; null after the last.
  std::shared_ptr<Slot> next();
  /// The next batch in the caller's memory, one tensor each, which have room
  /// for it. Its slot, without memory, is valid until the next call; null after
  /// the last.
  Slot* next_into(std::span<const TensorView> to);
  /// How many batches were made.
  std::int64_t made() const { return made_; }

 private:
  bool make(const std::function<void()>& fill);
  void plan(Slot& slot);

  const LoaderSetup& setup_;
  SlotSupply& slots_;
  FillMeters& meters_;
  CopyLine& copies_;
  Position next_;
  std::int64_t made_ = 0;
  std::exception_ptr broken_;
  std::unique_ptr<BatchFiller> filler_;
  Slot direct_;  // of next_into(), without memory
};

}  // namespace penstock
