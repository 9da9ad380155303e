#include "penstock/tokenizer/word_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace penstock {
namespace {

constexpr std::size_t kPage = std::size_t{1} << 21;
constexpr std::size_t kFirst = std::size_t{1} << 16;  // one page
constexpr std::size_t kFirstLong = std::size_t{1} << 13;
constexpr std::size_t kMost = std::size_t{1} << 20;  // 32 MiB
constexpr std::size_t kMostLongBytes = std::size_t{1} << 25;
constexpr std::size_t kLongest = 1024;

}  // namespace

WordCache::WordCache(std::size_t words) : long_slots_(kFirstLong) {
  make_slots(std::max(kFirst, std::bit_ceil(2 * words + 2)));
}

void WordCache::Unmap::operator()(void* memory) const {
  ::munmap(memory, size);
}

// Words lie all over the slots: in large pages, where the system has them, the
// processor need not look up where the page of each one is.
void WordCache::make_slots(std::size_t count) {
  memory_.reset();
  const std::size_t size = count * sizeof(Slot) + kPage;
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = {memory, Unmap{size}};
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  slots_ = reinterpret_cast<Slot*>((address + kPage - 1) / kPage * kPage);
  ::madvise(slots_, count * sizeof(Slot), MADV_HUGEPAGE);
  mask_ = count - 1;
}

void WordCache::grow() {
  const std::size_t count = mask_ + 1;
  if (2 * count > kMost) {  // begins anew
    make_slots(count);
    used_ = 0;
    ids_.clear();
    return;
  }
  const auto old = std::move(memory_);
  const Slot* from = slots_;
  make_slots(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    if (from[i].key.high == 0) continue;
    take(from[i].key, from[i].key.hash()) = from[i];
  }
}

WordCache::Slot& WordCache::take(Key key, std::uint64_t hash) {
  std::size_t at = line_of(hash);
  while (slots_[at].key.high != 0) at = (at + 1) & mask_;
  slots_[at].key = key;
  return slots_[at];
}

void WordCache::insert(Key key, std::uint64_t hash,
                       std::span<const std::uint32_t> ids) {
  if (used_ * 2 > mask_) grow();
  Slot& slot = take(key, hash);
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
  std::memcpy(&part, word.data() + word.size() - 8, 8);
  mix(part);
  return hash | 1;
}

std::span<const std::uint32_t> WordCache::find_long(std::string_view word,
                                                    std::uint64_t hash) const {
  std::size_t mask = long_slots_.size() - 1;
  for (std::size_t at = place_of_long(hash);; at = (at + 1) & mask) {
    const LongSlot& slot = long_slots_[at];
    if (slot.hash == 0) return {};
    if (slot.hash == hash && slot.size == word.size() &&
        std::memcmp(&texts_[slot.text], word.data(), word.size()) == 0)
      return {&long_ids_[slot.ids], slot.count};
  }
}

void WordCache::grow_long() {
  if (texts_.size() > kMostLongBytes) {  // begins anew
    long_slots_.assign(kFirstLong, {});
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
