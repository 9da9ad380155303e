#include "penstock/transforms/category/value_numbers.h"

#include <algorithm>
#include <array>

#include "penstock/base/base.h"
#include "penstock/base/hash.h"

// A table with open addressing: a slot has a part of the hash and the value's
// number, which leads to its place among the bytes of all values. Of a million
// values none of the three is in a cache, so that those of many values are
// requested before the first of them is used.

namespace penstock {
namespace {

constexpr std::size_t kTogether = 32;

std::uint32_t tag_of(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash >> 32);
}

}  // namespace

std::int64_t ValueNumbers::find(std::string_view value,
                                std::uint64_t hash) const {
  for (std::size_t at = home(hash);; at = home(at + 1)) {
    const Slot& slot = slots_[at];
    if (slot.number == 0) return -1;
    if (slot.tag == tag_of(hash) && value_of(kept_[slot.number - 1]) == value)
      return slot.number - 1;
  }
}

std::int64_t ValueNumbers::add(std::string_view value, std::uint64_t hash) {
  const std::int64_t found = find(value, hash);
  if (found >= 0) return found;
  PENSTOCK_ASSERT(kept_.size() < UINT32_MAX - 1, "a number has 32 bits");
  if (2 * (kept_.size() + 1) > slots_.size()) grow();
  kept_.push_back({bytes_.size(), hash, value.size()});
  bytes_ += value;
  put(hash, static_cast<std::uint32_t>(kept_.size()));
  return size() - 1;
}

void ValueNumbers::put(std::uint64_t hash, std::uint32_t number) {
  std::size_t at = home(hash);
  while (slots_[at].number != 0) at = home(at + 1);
  slots_[at] = {tag_of(hash), number};
}

void ValueNumbers::grow() {
  slots_.assign(2 * slots_.size(), {});
  for (std::size_t k = 0; k < kept_.size(); ++k)
    put(kept_[k].hash, static_cast<std::uint32_t>(k + 1));
}

std::int64_t ValueNumbers::add(std::string_view value) {
  return add(value, hash64(value));
}

std::int64_t ValueNumbers::find(std::string_view value) const {
  return find(value, hash64(value));
}

/// `each(i, hash)` for all values, when what they need is on its way.
template <class Each>
void ValueNumbers::each_prefetched(std::span<const std::string_view> values,
                                   Each each) const {
  std::array<std::uint64_t, kTogether> hashes;
  for (std::size_t begin = 0; begin < values.size(); begin += kTogether) {
    const std::size_t count = std::min(kTogether, values.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = hash64(values[begin + i]);
      __builtin_prefetch(&slots_[home(hashes[i])]);
    }
    // Mostly the first slot is the one.
    auto number = [&](std::size_t i) { return slots_[home(hashes[i])].number; };
    for (std::size_t i = 0; i < count; ++i)
      if (number(i) != 0) __builtin_prefetch(&kept_[number(i) - 1]);
    for (std::size_t i = 0; i < count; ++i)
      if (number(i) != 0)
        __builtin_prefetch(bytes_.data() + kept_[number(i) - 1].begin);
    for (std::size_t i = 0; i < count; ++i) each(begin + i, hashes[i]);
  }
}

void ValueNumbers::add(std::span<const std::string_view> values,
                       std::span<std::int64_t> numbers) {
  each_prefetched(values, [&](std::size_t i, std::uint64_t hash) {
    numbers[i] = add(values[i], hash);
  });
}

void ValueNumbers::find(std::span<const std::string_view> values,
                        std::span<std::int64_t> numbers) const {
  each_prefetched(values, [&](std::size_t i, std::uint64_t hash) {
    numbers[i] = find(values[i], hash);
  });
}

}  // namespace penstock
