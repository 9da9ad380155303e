#include "penstock/loader/work_items.h"

#include <algorithm>
#include <iterator>

namespace penstock {

void append_items(const std::shared_ptr<Slot>& slot, ReadAhead* reads,
                  std::vector<WorkItem>& items) {
  items.reserve(items.size() + slot->item_ends.size());
  std::int64_t begin = 0;
  for (std::int64_t end : slot->item_ends) {
    WorkItem& item = items.emplace_back(WorkItem{slot, begin, end});
    std::size_t first = slot->first_range(begin);
    if (reads != nullptr)
      item.read = reads->begin(
          std::span(slot->ids).subspan(first, slot->first_range(end) - first));
    begin = end;
  }
}

void WorkItems::add(std::vector<WorkItem>& items) {
  std::ranges::move(items, std::back_inserter(items_));
  items.clear();
}

std::optional<WorkItem> WorkItems::take_ready() {
  auto ready = std::ranges::find_if(items_, &WorkItem::ready);
  if (ready == items_.end()) return std::nullopt;
  std::optional<WorkItem> item = std::move(*ready);
  items_.erase(ready);
  return item;
}

std::optional<WorkItem> WorkItems::take_last_from(std::int64_t number) {
  if (items_.empty() || items_.back().slot->number < number)
    return std::nullopt;
  std::optional<WorkItem> last = std::move(items_.back());
  items_.pop_back();
  return last;
}

}  // namespace penstock
