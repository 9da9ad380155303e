#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/key.h"
#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/json_set/elements.h"

namespace penstock {

/// Which keys of a json_set hold numbers and which booleans, in all elements of
/// the kept rows, and for each the row with the smallest key as evidence.
struct KeyTypes final : FieldNotes {
  struct Key {
    std::string number_row, boolean_row;  ///< as KeyList::shown; empty: none
  };
  std::vector<Key>
      keys;  ///< a `sort_by` that is not one of the keys comes last

  void merge(FieldNotes& other) override;
};

/// Finds the key types of the rows of one block at a time. One thread.
class KeyTypeFinder {
 public:
  explicit KeyTypeFinder(std::size_t keys);

  /// A block begins; then add() for each of its rows.
  void start() { rows_.clear(); }
  void add(const Elements& elements);
  /// The rows of the block that are kept; `keys` ends with theirs.
  void keep(std::span<const std::int64_t> rows, const KeyList& keys);
  std::unique_ptr<KeyTypes> take(const KeyList& keys);

 private:
  struct Smallest {
    std::int64_t number = -1, boolean = -1;  // rows of the key list
  };
  void keep_row(std::int64_t row, const KeyList& keys,
                const std::uint64_t* words);
  void find_latest(const KeyList& keys);

  const std::size_t keys_;
  const std::size_t words_;          // of eight keys, per row
  std::vector<std::uint64_t> rows_;  // a byte of Held bits per key
  std::vector<std::uint64_t> seen_;  // of all kept rows
  std::vector<Smallest> smallest_;
  // The greatest of all smallest rows: a row behind it is no smallest one,
  // except of what was not seen before.
  std::int64_t latest_ = -1;
};

}  // namespace penstock
