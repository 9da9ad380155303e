#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/json.h"
#include "penstock/base/sample.h"

namespace penstock {

/// A list of row keys of one type: int64, text or uuid. Integers compare as
/// numbers, text by UTF-8 bytes, uuid by bytes. Not thread-safe while it
/// grows; fine to read from many threads afterwards.
class KeyList {
 public:
  explicit KeyList(ColumnType type = ColumnType::int64) : type_(type) {}

  ColumnType type() const { return type_; }
  std::int64_t size() const;
  /// Adds the key in `row` of a key column of the same type.
  void append(const Column& column, std::int64_t row);
  void append(const KeyList& from, std::int64_t at);
  void append_integer(std::int64_t key) { integers_.push_back(key); }
  /// A text, or the 16 bytes of a uuid.
  void append_bytes(std::string_view key);
  std::int64_t integer(std::int64_t at) const;
  /// The bytes of a text or uuid key.
  std::string_view bytes(std::int64_t at) const;
  /// -1, 0 or 1.
  int compare(std::int64_t a, std::int64_t b) const;
  /// A number, a text, or a uuid in its usual spelling.
  Json json(std::int64_t at) const;
  /// As in a message: 42, 'abc'.
  std::string shown(std::int64_t at) const;
  /// The key as bytes that are the same in every source.
  std::string canonical(std::int64_t at) const;
  /// All keys, to be written down: the integers, or where each text ends; and
  /// the bytes of texts and uuids.
  std::span<const std::int64_t> numbers() const {
    return type_ == ColumnType::int64 ? integers_ : ends_;
  }
  std::string_view characters() const { return chars_; }
  /// The list that has these.
  static KeyList from(ColumnType type, std::span<const std::int64_t> numbers,
                      std::string_view characters);
  std::size_t memory() const;
  void clear();
  void reserve(std::int64_t keys);

 private:
  ColumnType type_;
  std::vector<std::int64_t> integers_;
  std::vector<std::int64_t> ends_;  // text: where each key ends in chars_
  std::string chars_;
};

/// Eight bytes of a text from `begin` on, zeros after its end, as a number that
/// compares as they do: what decides most comparisons without the text.
std::uint64_t key_part(std::string_view text, std::size_t begin);
/// How many bytes at the beginning of both are the same, up to `most`.
std::size_t common_length(std::string_view a, std::string_view b,
                          std::size_t most);

/// Whether row key `a` sorts before `b`, both as KeyList::shown writes them.
bool shown_before(const std::string& a, const std::string& b);

}  // namespace penstock
