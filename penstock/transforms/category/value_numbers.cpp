#include "penstock/transforms/category/value_numbers.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "penstock/base/base.h"
#include "penstock/base/hash.h"

// A table with open addressing: a slot has a part of the hash and the value's
// number, which leads to its bytes: next to each other where it is short. Of a
// million values neither is in a cache, so that those of many values are
// requested before the first of them is used.

namespace penstock {
namespace {

constexpr std::size_t kTogether = 32;

std::uint32_t tag_of(std::string_view value) {
  return static_cast<std::uint32_t>(hash64(value) >> 32);
}

template <class Word>
bool same_word(const char* a, const char* b) {
  Word of_a, of_b;
  std::memcpy(&of_a, a, sizeof(of_a));
  std::memcpy(&of_b, b, sizeof(of_b));
  return of_a == of_b;
}

/// As memcmp(), without a call for what is mostly short.
bool same(const char* a, const char* b, std::size_t size) {
  using Eight = std::uint64_t;
  using Four = std::uint32_t;
  if (size >= sizeof(Eight)) {
    const std::size_t last = size - sizeof(Eight);
    for (std::size_t at = 0; at < last; at += sizeof(Eight))
      if (!same_word<Eight>(a + at, b + at)) return false;
    return same_word<Eight>(a + last, b + last);
  }
  if (size >= sizeof(Four)) {
    const std::size_t last = size - sizeof(Four);
    return same_word<Four>(a, b) && same_word<Four>(a + last, b + last);
  }
  for (std::size_t at = 0; at < size; ++at)
    if (a[at] != b[at]) return false;
  return true;
}

}  // namespace

const char* ValueNumbers::begin_of(const Kept& kept) const {
  if (kept.size <= kShort) return kept.bytes;
  std::uint64_t begin = 0;
  std::memcpy(&begin, kept.bytes, sizeof(begin));
  return long_.data() + begin;
}

// The low bits of a tag are a value's home, and all 32 bits are compared before
// its bytes are, so a comparison of bytes is rarely in vain. At most half of
// the slots are in use and nothing is erased: a search ends at a free one.
std::int64_t ValueNumbers::find(std::string_view value,
                                std::uint32_t tag) const {
  for (std::size_t at = home(tag);; at = next(at + 1)) {
    const Slot& slot = slots_[at];
    if (slot.number == 0) return -1;
    if (slot.tag != tag) continue;
    const Kept& kept = kept_[slot.number - 1];
    if (kept.size == value.size() &&
        same(begin_of(kept), value.data(), value.size()))
      return slot.number - 1;
  }
}

std::int64_t ValueNumbers::add(std::string_view value, std::uint32_t tag) {
  const std::int64_t found = find(value, tag);
  if (found >= 0) return found;
  PENSTOCK_ASSERT(kept_.size() < UINT32_MAX - 1, "a number has 32 bits");
  if (2 * (kept_.size() + 1) > slots_.size()) grow();
  kept_.push_back(kept(value));
  put({tag, static_cast<std::uint32_t>(kept_.size())});
  return size() - 1;
}

ValueNumbers::Kept ValueNumbers::kept(std::string_view value) {
  PENSTOCK_ASSERT(value.size() <= UINT32_MAX, "a value has less than 4 GiB");
  Kept kept{.size = static_cast<std::uint32_t>(value.size()), .bytes = {}};
  if (value.size() <= kShort) {
    std::copy(value.begin(), value.end(), kept.bytes);
    return kept;
  }
  const std::uint64_t begin = long_.size();
  std::memcpy(kept.bytes, &begin, sizeof(begin));
  long_ += value;
  return kept;
}

void ValueNumbers::put(Slot slot) {
  std::size_t at = home(slot.tag);
  while (slots_[at].number != 0) at = next(at + 1);
  slots_[at] = slot;
}

// The tags are in the slots, so no value is hashed or read again.
void ValueNumbers::grow() {
  const auto before = std::move(slots_);
  slots_.assign(2 * before.size(), {});
  for (const Slot& slot : before)
    if (slot.number != 0) put(slot);
}

std::int64_t ValueNumbers::add(std::string_view value) {
  return add(value, tag_of(value));
}

std::int64_t ValueNumbers::find(std::string_view value) const {
  return find(value, tag_of(value));
}

/// `each(i, tag)` for all values, when what they need is on its way.
template <class Each>
void ValueNumbers::each_prefetched(std::span<const std::string_view> values,
                                   Each each) const {
  std::array<std::uint32_t, kTogether> tags;
  for (std::size_t begin = 0; begin < values.size(); begin += kTogether) {
    const std::size_t count = std::min(kTogether, values.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      tags[i] = tag_of(values[begin + i]);
      __builtin_prefetch(&slots_[home(tags[i])]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      // Mostly the first slot is the one.
      const Slot& slot = slots_[home(tags[i])];
      if (slot.number != 0) __builtin_prefetch(&kept_[slot.number - 1]);
    }
    for (std::size_t i = 0; i < count; ++i) each(begin + i, tags[i]);
  }
}

void ValueNumbers::add(std::span<const std::string_view> values,
                       std::span<std::int64_t> numbers) {
  each_prefetched(values, [&](std::size_t i, std::uint32_t tag) {
    numbers[i] = add(values[i], tag);
  });
}

void ValueNumbers::find(std::span<const std::string_view> values,
                        std::span<std::int64_t> numbers) const {
  each_prefetched(values, [&](std::size_t i, std::uint32_t tag) {
    numbers[i] = find(values[i], tag);
  });
}

}  // namespace penstock
