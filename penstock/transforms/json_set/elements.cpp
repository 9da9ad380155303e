#include "penstock/transforms/json_set/elements.h"

namespace penstock {

KeySlots::KeySlots(const JsonSet& set) : names(set.keys), keys(names.size()) {
  auto slot_of = [&](const std::string& key) {
    std::size_t slot = find(key);
    if (slot != kNone) return slot;
    names.push_back(key);
    return names.size() - 1;
  };
  if (set.overflow == JsonSet::Overflow::strongest)
    sort_by = slot_of(set.sort_by);
  numeric = names.size();
  for (const std::string& key : set.required) required.push_back(slot_of(key));
}

std::size_t KeySlots::find(std::string_view key) const {
  for (std::size_t slot = 0; slot < names.size(); ++slot)
    if (names[slot] == key) return slot;
  return kNone;
}

void Elements::grow() {
  std::size_t elements = std::max<std::size_t>(16, 2 * count);
  values.resize(elements * slots);
  held.resize(elements * slots + kWord);
}

}  // namespace penstock
