#include "penstock/sources/key_lookup.h"

#include <algorithm>
#include <numeric>

namespace penstock {

// O(n log n) for n keys. `first_` has one position for each different key, by
// ascending key, which is what find() searches; `group_of_` leads all positions
// that asked for a key to it.
void KeyLookup::assign(const KeyList& keys) {
  keys_ = &keys;
  auto count = static_cast<std::size_t>(keys.size());
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  std::ranges::sort(order_, [&](std::int64_t a, std::int64_t b) {
    return keys.compare(a, b) < 0;
  });
  group_of_.resize(count);
  first_.clear();
  for (std::int64_t at : order_) {
    if (first_.empty() || keys.compare(first_.back(), at) != 0)
      first_.push_back(at);
    group_of_[static_cast<std::size_t>(at)] = first_.size() - 1;
  }
}

template <class Compare>
std::optional<std::size_t> KeyLookup::search(Compare compare) const {
  auto found = std::ranges::partition_point(
      first_, [&](std::int64_t at) { return compare(at) < 0; });
  if (found == first_.end() || compare(*found) != 0) return std::nullopt;
  return static_cast<std::size_t>(found - first_.begin());
}

std::optional<std::size_t> KeyLookup::find(std::int64_t key) const {
  return search([&](std::int64_t at) {
    std::int64_t asked = keys_->integer(at);
    return asked < key ? -1 : asked > key ? 1 : 0;
  });
}

std::optional<std::size_t> KeyLookup::find(std::string_view key) const {
  return search([&](std::int64_t at) { return keys_->bytes(at).compare(key); });
}

}  // namespace penstock
