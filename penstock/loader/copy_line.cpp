#include "penstock/loader/copy_line.h"

#include <algorithm>
#include <utility>

namespace penstock {

void CopyLine::add(std::shared_ptr<Slot> slot) {
  Lock lock(mutex_);
  waiting_.push_back(std::move(slot));
}

bool CopyLine::next(std::shared_ptr<Slot>& slot) {
  Lock lock(mutex_);
  auto first = std::ranges::min_element(
      waiting_, {}, [](const auto& waiting) { return waiting->number; });
  if (first == waiting_.end()) return false;
  if ((*first)->number != next_ && !last_.passed()) return false;
  slot = std::move(*first);
  waiting_.erase(first);
  count(slot->number);
  queue(*slot);
  return true;
}

void CopyLine::count(std::int64_t number) {
  ahead_.push_back(number);
  for (auto found = ahead_.begin();
       (found = std::ranges::find(ahead_, next_)) != ahead_.end(); ++next_)
    ahead_.erase(found);
}

void CopyLine::copy(Slot& slot) {
  Lock lock(mutex_);
  queue(slot);
}

void CopyLine::queue(Slot& slot) {
  stream_->copy(slot.target.data() + slot.copied_at, slot.host.data(),
                slot.copied_bytes);
  slot.copied = last_ = stream_->record_untimed();
}

void CopyLine::settle() noexcept {
  try {
    Lock lock(mutex_);
    stream_->synchronize();
  } catch (...) {
    log_exception(LogLevel::warning, "a loader's copies failed");
  }
}

}  // namespace penstock
