#include "penstock/base/key.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace penstock {

std::int64_t KeyList::size() const {
  if (type_ == ColumnType::int64)
    return static_cast<std::int64_t>(integers_.size());
  return static_cast<std::int64_t>(
      type_ == ColumnType::uuid ? chars_.size() / 16 : ends_.size());
}

void KeyList::append(const Column& column, std::int64_t row) {
  if (type_ == ColumnType::int64) {
    integers_.push_back(column.int64(row));
  } else if (type_ == ColumnType::uuid) {
    append_bytes({reinterpret_cast<const char*>(column.uuid(row)), 16});
  } else {
    append_bytes(column.text(row));
  }
}

void KeyList::append(const KeyList& from, std::int64_t at) {
  if (type_ == ColumnType::int64) {
    integers_.push_back(from.integer(at));
    return;
  }
  append_bytes(from.bytes(at));
}

void KeyList::append_bytes(std::string_view key) {
  chars_ += key;
  if (type_ != ColumnType::uuid)
    ends_.push_back(static_cast<std::int64_t>(chars_.size()));
}

KeyList KeyList::from(ColumnType type, std::span<const std::int64_t> numbers,
                      std::string_view characters) {
  KeyList keys(type);
  (type == ColumnType::int64 ? keys.integers_ : keys.ends_)
      .assign(numbers.begin(), numbers.end());
  keys.chars_ = characters;
  return keys;
}

std::int64_t KeyList::integer(std::int64_t at) const {
  return integers_[static_cast<std::size_t>(at)];
}

std::string_view KeyList::bytes(std::int64_t at) const {
  auto i = static_cast<std::size_t>(at);
  if (type_ == ColumnType::uuid)
    return std::string_view(chars_).substr(16 * i, 16);
  std::size_t start = i == 0 ? 0 : static_cast<std::size_t>(ends_[i - 1]);
  return std::string_view(chars_).substr(
      start, static_cast<std::size_t>(ends_[i]) - start);
}

int KeyList::compare(std::int64_t a, std::int64_t b) const {
  if (type_ == ColumnType::int64) {
    std::int64_t x = integer(a), y = integer(b);
    return x < y ? -1 : x > y ? 1 : 0;
  }
  int sign = bytes(a).compare(bytes(b));  // char_traits compares as unsigned
  return sign < 0 ? -1 : sign > 0 ? 1 : 0;
}

Json KeyList::json(std::int64_t at) const {
  if (type_ == ColumnType::int64) return integer(at);
  if (type_ != ColumnType::uuid) return std::string(bytes(at));
  std::string text;
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    auto byte = static_cast<unsigned char>(bytes(at)[i]);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string KeyList::shown(std::int64_t at) const {
  if (type_ == ColumnType::int64) return std::to_string(integer(at));
  return "'" + json(at).string() + "'";
}

std::string KeyList::canonical(std::int64_t at) const {
  if (type_ != ColumnType::int64) return std::string(bytes(at));
  std::int64_t value = integer(at);
  std::string text(8, '\0');
  std::memcpy(text.data(), &value, 8);
  return text;
}

std::size_t KeyList::memory() const {
  return integers_.capacity() * 8 + ends_.capacity() * 8 + chars_.capacity();
}

void KeyList::clear() {
  integers_.clear();
  ends_.clear();
  chars_.clear();
}

void KeyList::reserve(std::int64_t keys) {
  auto count = static_cast<std::size_t>(keys);
  if (type_ == ColumnType::int64)
    integers_.reserve(count);
  else if (type_ == ColumnType::uuid)
    chars_.reserve(16 * count);
  else
    ends_.reserve(count);
}

// Big-endian, and zeros past the end, so that the numbers are ordered as the
// bytes are: most comparisons of a sort look at eight bytes at once. Texts that
// differ only later, or by zeros at the end, have equal parts and are compared
// in full.
std::uint64_t key_part(std::string_view text, std::size_t begin) {
  std::uint64_t part = 0;
  if (begin < text.size())
    std::memcpy(&part, text.data() + begin,
                std::min(sizeof(part), text.size() - begin));
  if constexpr (std::endian::native == std::endian::little)
    part = __builtin_bswap64(part);
  return part;
}

std::size_t common_length(std::string_view a, std::string_view b,
                          std::size_t most) {
  const std::size_t limit = std::min({a.size(), b.size(), most});
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(limit),
                    b.begin())
          .first -
      a.begin());
}

// Texts and uuids are shown in quotes and sort by their bytes; integers as
// numbers; a row without a key comes first.
bool shown_before(const std::string& a, const std::string& b) {
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

}  // namespace penstock
