#include "penstock/transforms/json_set/key_types.h"

#include <cstring>
#include <utility>

namespace penstock {
namespace {

void take_smaller(std::string& smallest, std::string row) {
  if (smallest.empty() || (!row.empty() && shown_before(row, smallest)))
    smallest = std::move(row);
}

}  // namespace

KeyTypeFinder::KeyTypeFinder(std::size_t keys)
    : keys_(keys), words_((keys + 7) / 8), seen_(words_), smallest_(keys) {}

// Eight keys at a time: each has a byte of Held bits.
void KeyTypeFinder::add(const Elements& elements) {
  std::size_t first = rows_.size();
  rows_.resize(first + words_);
  for (std::size_t word = 0; word < words_; ++word) {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < elements.count; ++i) {
      std::uint64_t held;
      std::memcpy(&held, &elements.held[i * elements.slots + 8 * word], 8);
      all |= held;
    }
    rows_[first + word] = all;
  }
}

void KeyTypeFinder::keep(std::span<const std::int64_t> rows,
                         const KeyList& keys) {
  std::int64_t key = keys.size() - std::ssize(rows);
  for (std::int64_t row : rows) {
    const std::uint64_t* words =
        rows_.data() + static_cast<std::size_t>(row) * words_;
    bool smaller = latest_ < 0 || keys.compare(key, latest_) < 0;
    for (std::size_t word = 0; !smaller && word < words_; ++word)
      smaller = (words[word] & ~seen_[word]) != 0;
    if (smaller) keep_row(key, keys, words);
    ++key;
  }
}

void KeyTypeFinder::keep_row(std::int64_t row, const KeyList& keys,
                             const std::uint64_t* words) {
  auto take = [&](std::int64_t& smallest) {
    if (smallest < 0 || keys.compare(row, smallest) < 0) smallest = row;
  };
  for (std::size_t key = 0; key < keys_; ++key) {
    auto held = static_cast<std::uint8_t>(words[key / 8] >> (8 * (key % 8)));
    if (held & static_cast<std::uint8_t>(Held::number))
      take(smallest_[key].number);
    if (held & static_cast<std::uint8_t>(Held::boolean))
      take(smallest_[key].boolean);
  }
  for (std::size_t word = 0; word < words_; ++word) seen_[word] |= words[word];
  find_latest(keys);
}

void KeyTypeFinder::find_latest(const KeyList& keys) {
  latest_ = -1;
  for (const Smallest& key : smallest_)
    for (std::int64_t row : {key.number, key.boolean})
      if (row >= 0 && (latest_ < 0 || keys.compare(row, latest_) > 0))
        latest_ = row;
}

std::unique_ptr<KeyTypes> KeyTypeFinder::take(const KeyList& keys) {
  auto types = std::make_unique<KeyTypes>();
  types->keys.resize(keys_);
  auto shown = [&](std::int64_t row) {
    return row < 0 ? std::string() : keys.shown(row);
  };
  for (std::size_t key = 0; key < keys_; ++key)
    types->keys[key] = {shown(smallest_[key].number),
                        shown(smallest_[key].boolean)};
  seen_.assign(words_, 0);
  smallest_.assign(keys_, {});
  latest_ = -1;
  return types;
}

void KeyTypes::merge(FieldNotes& other) {
  auto& from = static_cast<KeyTypes&>(other);
  if (keys.size() < from.keys.size()) keys.resize(from.keys.size());
  for (std::size_t key = 0; key < from.keys.size(); ++key) {
    take_smaller(keys[key].number_row, std::move(from.keys[key].number_row));
    take_smaller(keys[key].boolean_row, std::move(from.keys[key].boolean_row));
  }
}

}  // namespace penstock
