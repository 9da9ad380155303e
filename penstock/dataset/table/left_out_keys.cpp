#include "penstock/dataset/table/left_out_keys.h"

#include <algorithm>
#include <span>
#include <utility>

namespace penstock {

std::uint64_t hash_of_key(const KeyList& keys, std::int64_t at) {
  if (keys.type() != ColumnType::int64) return hash64(keys.bytes(at));
  std::int64_t number = keys.integer(at);
  return hash64(std::as_bytes(std::span(&number, 1)));
}

void LeftOutKeys::add(const KeyList& keys, std::int64_t at) {
  ++count_;
  std::uint64_t hash = hash_of_key(keys, at);
  if (bound_ && hash >= *bound_) return;
  add({hash, keys.canonical(at), keys.shown(at)});
}

void LeftOutKeys::add(Key key) {
  if (bound_ && key.hash >= *bound_) return;
  keys_.push_back(std::move(key));
  if (keys_.size() >= 2 * kMost) sort();
}

void LeftOutKeys::merge(LeftOutKeys&& other) {
  count_ += other.count_;
  if (!twice_) twice_ = std::move(other.twice_);
  if (other.bound_ && (!bound_ || *other.bound_ < *bound_)) {
    bound_ = other.bound_;
    std::erase_if(keys_, [&](const Key& key) { return key.hash >= *bound_; });
  }
  for (Key& key : other.keys_) add(std::move(key));
  other = LeftOutKeys();
}

void LeftOutKeys::sort() {
  std::ranges::sort(keys_,
                    [](const Key& a, const Key& b) { return a.before(b); });
  auto same = std::ranges::adjacent_find(
      keys_, [](const Key& a, const Key& b) { return a.bytes == b.bytes; });
  if (same != keys_.end() && !twice_) twice_ = same->shown;
  if (keys_.size() <= kMost) return;
  bound_ = keys_[kMost].hash;
  auto first_out = std::ranges::lower_bound(keys_, *bound_, {}, &Key::hash);
  keys_.erase(first_out, keys_.end());
}

bool LeftOutKeys::contains(const KeyList& keys, std::int64_t at) const {
  std::uint64_t hash = hash_of_key(keys, at);
  if (bound_ && hash >= *bound_) return false;
  auto found = std::ranges::lower_bound(keys_, hash, {}, &Key::hash);
  for (; found != keys_.end() && found->hash == hash; ++found)
    if (found->bytes == keys.canonical(at)) return true;
  return false;
}

}  // namespace penstock
