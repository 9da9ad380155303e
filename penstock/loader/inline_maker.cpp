#include "penstock/loader/inline_maker.h"

#include <iterator>

namespace penstock {

InlineMaker::InlineMaker(const LoaderSetup& setup, SlotSupply& slots,
                         FillMeters& meters, CopyLine& copies)
    : setup_(setup),
      slots_(slots),
      meters_(meters),
      copies_(copies),
      next_(setup.options.start) {}

/// Calls `fill`, which plans and fills the next batch. False after the last.
bool InlineMaker::make(const std::function<void()>& fill) {
  if (broken_) std::rethrow_exception(broken_);
  if (setup_.options.batches >= 0 && made_ == setup_.options.batches)
    return false;
  try {
    if (filler_ == nullptr) filler_ = setup_.make_filler(meters_);
    fill();
  } catch (...) {
    broken_ = named_error(std::current_exception(), "loader");
    if (filler_ != nullptr) filler_->settle();
    copies_.settle();
    std::rethrow_exception(broken_);
  }
  ++made_;
  return true;
}

void InlineMaker::plan(Slot& slot) {
  setup_.plan(next_, 1, meters_.plan, slot);
  next_ = next_position(setup_.order, next_);
  slot.number = made_;
}

std::shared_ptr<Slot> InlineMaker::next() {
  std::shared_ptr<Slot> slot;  // goes after what is queued on it has ended
  const bool is_there = make([&] {
    slot = slots_.open();
    plan(*slot);
    setup_.maker.carve(*slot);
    slot->rejected = filler_->fill(*slot, 0, std::ssize(slot->plan.bin_ends));
    filler_->operate(*slot);
    if (slot->host.data() != nullptr) copies_.copy(*slot);
    filler_->finish(*slot);
  });
  return is_there ? slot : nullptr;
}

Slot* InlineMaker::next_into(std::span<const TensorView> to) {
  const bool is_there = make([&] {
    plan(direct_);
    direct_.fill.clear();
    for (const TensorView& view : to) direct_.fill.push_back(view.data);
    direct_.rejected =
        filler_->fill(direct_, 0, std::ssize(direct_.plan.bin_ends));
    filler_->operate(direct_);
  });
  return is_there ? &direct_ : nullptr;
}

}  // namespace penstock
