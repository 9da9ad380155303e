#include "penstock/transforms/detail/tally.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace penstock {

Tally::Tally(std::size_t keys) : numbers_(keys), booleans_(keys) {}

// `bytes` counts for eight keys, the first one lowest.
void Tally::add_bytes(std::uint64_t bytes, std::size_t first,
                      std::vector<Count>& counts, const KeyList& rows) {
  std::size_t end = std::min(counts.size(), first + 8);
  for (std::size_t key = first; key < end; ++key, bytes >>= 8) {
    Count& count = counts[key];
    std::uint64_t in_row = bytes & 0xff;
    count.in_block += static_cast<std::int64_t>(in_row);
    if (in_row == 0 || (count.smallest >= 0 && !before_latest_)) continue;
    std::int64_t row = rows.size() - 1;
    if (count.smallest >= 0 && rows.compare(row, count.smallest) >= 0) continue;
    count.smallest = row;
    changed_ = true;
  }
}

void Tally::find_latest(const KeyList& rows) {
  latest_ = -1;
  for (const std::vector<Count>* counts : {&numbers_, &booleans_})
    for (const Count& count : *counts)
      if (count.smallest >= 0 &&
          (latest_ < 0 || rows.compare(count.smallest, latest_) > 0))
        latest_ = count.smallest;
}

// Eight keys at a time: each has a byte that is 1 for a number and 2 for a
// boolean, so a sum of words counts all eight, as long as no byte overflows.
void Tally::add(const Elements& elements, const KeyList& rows) {
  constexpr std::uint64_t kOnes = 0x0101010101010101u;
  constexpr std::size_t kMostInByte = 255;
  before_latest_ = latest_ < 0 || rows.compare(rows.size() - 1, latest_) < 0;
  for (std::size_t first = 0; first < numbers_.size(); first += 8)
    for (std::size_t at = 0; at < elements.count; at += kMostInByte) {
      std::size_t end = std::min(elements.count, at + kMostInByte);
      std::uint64_t numbers = 0, booleans = 0;
      for (std::size_t i = at; i < end; ++i) {
        std::uint64_t held;
        std::memcpy(&held, &elements.held[i * elements.slots + first], 8);
        numbers += held & kOnes;
        booleans += (held >> 1) & kOnes;
      }
      add_bytes(numbers, first, numbers_, rows);
      add_bytes(booleans, first, booleans_, rows);
    }
  if (changed_) find_latest(rows);
  changed_ = false;
}

void Tally::flush(const KeyList& rows, std::vector<Seen::Key>& seen) {
  auto add_block = [&](Count& from, std::int64_t& sum, std::string& smallest) {
    sum += from.in_block;
    if (from.smallest >= 0) {
      std::string row = rows.shown(from.smallest);
      if (smallest.empty() || sorts_before(row, smallest))
        smallest = std::move(row);
    }
    from = {};
  };
  seen.resize(numbers_.size());
  for (std::size_t key = 0; key < seen.size(); ++key) {
    add_block(numbers_[key], seen[key].numbers, seen[key].number_row);
    add_block(booleans_[key], seen[key].booleans, seen[key].boolean_row);
  }
  latest_ = -1;
}

// Texts and uuids are shown in quotes and sort by their bytes; integers as
// numbers; a row without a key comes first.
bool sorts_before(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a.empty() && !b.empty();
  if (a[0] == '\'') {
    auto inside = [](const std::string& shown) {
      return std::string_view(shown).substr(1, shown.size() - 2);
    };
    return inside(a) < inside(b);
  }
  std::int64_t x = 0, y = 0;
  std::from_chars(a.data(), a.data() + a.size(), x);
  std::from_chars(b.data(), b.data() + b.size(), y);
  return x < y;
}

void Seen::merge(Seen&& other) {
  if (sets.size() < other.sets.size()) sets.resize(other.sets.size());
  for (std::size_t field = 0; field < other.sets.size(); ++field) {
    std::vector<Key>& ours = sets[field];
    std::vector<Key>& theirs = other.sets[field];
    if (ours.size() < theirs.size()) ours.resize(theirs.size());
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      auto take = [](std::string& smallest, std::string& row) {
        if (smallest.empty() || (!row.empty() && sorts_before(row, smallest)))
          smallest = std::move(row);
      };
      ours[i].numbers += theirs[i].numbers;
      ours[i].booleans += theirs[i].booleans;
      take(ours[i].number_row, theirs[i].number_row);
      take(ours[i].boolean_row, theirs[i].boolean_row);
    }
  }
  too_short += other.too_short;
  std::ranges::move(other.bad, std::back_inserter(bad));
  other = Seen();
}

void Seen::sort() {
  std::ranges::stable_sort(bad, sorts_before, &BadRow::shown_key);
}

}  // namespace penstock
