#include "penstock/tokenizer/word_cache.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

constexpr std::size_t kFirst = std::size_t{1} << 13;
constexpr std::size_t kMost = std::size_t{1} << 20;  // 32 MiB
constexpr std::size_t kMostLongBytes = std::size_t{1} << 25;
constexpr std::size_t kLongest = 1024;

}  // namespace

WordCache::WordCache() : long_slots_(kFirst) { make_slots(kFirst); }

void WordCache::make_slots(std::size_t size) {
  memory_ = Bytes();
  memory_.resize(size * sizeof(Slot) + 64);
  auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
  slots_ = reinterpret_cast<Slot*>(memory_.mutable_data<std::byte>() +
                                   (64 - address % 64) % 64);
  std::memset(static_cast<void*>(slots_), 0, size * sizeof(Slot));
  mask_ = size - 1;
}

void WordCache::grow() {
  const std::size_t count = mask_ + 1;
  if (2 * count > kMost) {  // begins anew
    make_slots(count);
    used_ = 0;
    ids_.clear();
    return;
  }
  const Bytes old = std::move(memory_);
  const Slot* from = slots_;
  make_slots(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    if (from[i].key.high == 0) continue;
    std::size_t at = from[i].key.hash() & mask_;
    while (slots_[at].key.high != 0) at = (at + 1) & mask_;
    slots_[at] = from[i];
  }
}

void WordCache::insert(Key key, std::uint64_t hash,
                       std::span<const std::uint32_t> ids) {
  if (used_ * 2 > mask_) grow();
  std::size_t at = hash & mask_;
  while (slots_[at].key.high != 0) at = (at + 1) & mask_;
  Slot& slot = slots_[at];
  slot.key = key;
  slot.count = static_cast<std::uint32_t>(ids.size());
  if (ids.size() <= 3) {
    std::copy(ids.begin(), ids.end(), slot.tokens);
  } else {
    slot.tokens[0] = static_cast<std::uint32_t>(ids_.size());
    ids_.insert(ids_.end(), ids.begin(), ids.end());
  }
  ++used_;
}

std::uint64_t WordCache::hash_long(std::string_view word) {
  std::uint64_t hash = word.size() * 0x9E3779B97F4A7C15;
  auto mix = [&hash](std::uint64_t part) {
    hash = (hash ^ part) * 0xD6E8FEB86659FD93;
    hash ^= hash >> 32;
  };
  std::uint64_t part;
  std::size_t at = 0;
  for (; at + 8 <= word.size(); at += 8) {
    std::memcpy(&part, word.data() + at, 8);
    mix(part);
  }
  part = 0;
  if (at < word.size()) std::memcpy(&part, word.data() + at, word.size() - at);
  mix(part);
  return hash | 1;
}

std::span<const std::uint32_t> WordCache::find_long(std::string_view word,
                                                    std::uint64_t hash) const {
  std::size_t mask = long_slots_.size() - 1;
  for (std::size_t at = hash >> 20 & mask;; at = (at + 1) & mask) {
    const LongSlot& slot = long_slots_[at];
    if (slot.hash == 0) return {};
    if (slot.hash == hash && slot.size == word.size() &&
        std::memcmp(&texts_[slot.text], word.data(), word.size()) == 0)
      return {&long_ids_[slot.ids], slot.count};
  }
}

void WordCache::grow_long() {
  if (texts_.size() > kMostLongBytes) {  // begins anew
    long_slots_.assign(kFirst, {});
    long_used_ = 0;
    texts_.clear();
    long_ids_.clear();
    return;
  }
  if (long_used_ * 2 < long_slots_.size()) return;
  std::vector<LongSlot> old(2 * long_slots_.size());
  old.swap(long_slots_);
  std::size_t mask = long_slots_.size() - 1;
  for (const LongSlot& slot : old) {
    if (slot.hash == 0) continue;
    std::size_t at = slot.hash >> 20 & mask;
    while (long_slots_[at].hash != 0) at = (at + 1) & mask;
    long_slots_[at] = slot;
  }
}

void WordCache::insert_long(std::string_view word, std::uint64_t hash,
                            std::span<const std::uint32_t> ids) {
  if (word.size() > kLongest || ids.empty()) return;
  grow_long();
  std::size_t mask = long_slots_.size() - 1, at = hash >> 20 & mask;
  while (long_slots_[at].hash != 0) at = (at + 1) & mask;
  long_slots_[at] = {hash, static_cast<std::uint32_t>(texts_.size()),
                     static_cast<std::uint32_t>(word.size()),
                     static_cast<std::uint32_t>(long_ids_.size()),
                     static_cast<std::uint32_t>(ids.size())};
  ++long_used_;
  texts_.insert(texts_.end(), word.begin(), word.end());
  long_ids_.insert(long_ids_.end(), ids.begin(), ids.end());
}

}  // namespace penstock
