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
constexpr std::size_t kMost = std::size_t{1} << 20;   // 32 MiB

/// Makes room for more. What grows beyond a little gets addresses for much more
/// than it has, so that it seldom moves; only what is written to takes memory.
template <class T>
void make_room(std::vector<T>& of, std::size_t more) {
  constexpr std::size_t kLittle = std::size_t{1} << 16;
  constexpr std::size_t kMuch = std::size_t{1} << 24;
  if (of.capacity() - of.size() >= more) return;
  const std::size_t needed = (of.size() + more) * sizeof(T);
  if (needed >= kLittle) of.reserve(std::max(kMuch, 2 * needed) / sizeof(T));
}

}  // namespace

// The slots are one open table that is probed in order. Its invariants:
// 1. A slot is free where the upper half of its key is 0. The length in the top
//    byte (or all ones, of a long word) makes every real key different from 0.
// 2. Fresh pages of mmap are zero, so a new table is empty without a write.
// 3. A key took the first free slot from the beginning of its line on, and
//    nothing is erased. A free second slot of a line therefore ends a search.
// 4. At most half of the slots are taken, or two thirds by the words for which
//    the constructor made room, so every search ends.
// 5. Slots move only in grow(); reserve() makes sure that it is not called
//    while pointers to slots are held.
WordCache::WordCache(std::size_t words) {
  make_slots(std::max(kFirst, std::bit_ceil(words + words / 2 + 2)));
  most_ = std::max(most_, words);
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
  end_ = slots_ + count;
  shift_ = 65 - std::countr_zero(count);
  most_ = count / 2;
}

void WordCache::grow() {
  const auto count = static_cast<std::size_t>(end_ - slots_);
  if (2 * count > kMost || texts_.size() > kMostText) {  // begins again
    make_slots(count);
    used_ = 0;
    ids_.clear();
    long_words_.clear();
    texts_.clear();
    return;
  }
  const auto old = std::move(memory_);
  const Slot* from = slots_;
  make_slots(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    if (from[i].key.high == 0) continue;
    take(from[i].key) = from[i];
  }
}

WordCache::Slot& WordCache::take(Key key) {
  Slot* at = slots_ + (line_of(key) - slots_);
  while (at->key.high != 0) at = at + 1 == end_ ? slots_ : at + 1;
  at->key = key;
  return *at;
}

WordCache::Slot& WordCache::add(Key key) {
  if (used_ + 1 > most_) grow();
  ++used_;
  return take(key);
}

const WordCache::Slot& WordCache::insert(Key key,
                                         std::span<const std::uint32_t> ids) {
  Slot& slot = add(key);
  slot.tokens[3] = static_cast<std::uint32_t>(ids.size());
  if (ids.size() <= 3) {
    std::copy(ids.begin(), ids.end(), slot.tokens);
  } else {
    slot.tokens[0] = static_cast<std::uint32_t>(ids_.size());
    make_room(ids_, ids.size());
    ids_.insert(ids_.end(), ids.begin(), ids.end());
  }
  return slot;
}

const WordCache::Slot& WordCache::insert_long(
    std::string_view word, Key key, std::span<const std::uint32_t> ids) {
  Slot& slot = add(key);
  slot.tokens[3] = kLong;
  slot.tokens[0] = static_cast<std::uint32_t>(long_words_.size());
  make_room(long_words_, 1);
  long_words_.push_back({texts_.size(), word.size(), ids_.size(), ids.size()});
  make_room(texts_, word.size());
  texts_.insert(texts_.end(), word.begin(), word.end());
  make_room(ids_, ids.size());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  return slot;
}

std::span<const std::uint32_t> WordCache::ids(const Slot& slot,
                                              std::string_view word) const {
  if (slot.count() <= 3) return {slot.tokens, slot.count()};
  if (slot.count() != kLong) return {&ids_[slot.tokens[0]], slot.count()};
  const LongWord& known = long_words_[slot.tokens[0]];
  if (known.size != word.size() ||
      std::memcmp(&texts_[known.text], word.data(), word.size()) != 0)
    return {};
  return {ids_.data() + known.ids, known.count};
}

// A hash of the words of 8 bytes and of the last 8, which may overlap the one
// before; a long word has at least 16. Two words may share a key: ids()
// compares the texts, and a word whose key is taken by another is encoded each
// time.
WordCache::Key WordCache::key_of_long(std::string_view word) {
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
  return {hash, UINT64_MAX};
}

}  // namespace penstock
