#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/bytes.h"
#include "penstock/base/key.h"
#include "penstock/transforms/fields.h"

namespace penstock {

/// Raw rows: parsed and checked, not yet standardised.
///
/// A row's values are a run of float64: for a json_set the number of kept
/// elements, then keys x elements in element order; for columns one value
/// each (dtype int64: the integer's bits). A missing value is the one quiet
/// NaN std::numeric_limits<double>::quiet_NaN(); negative zero is zero;
/// booleans are 0 and 1.
struct RawBlock {
  KeyList keys;
  Bytes values;                     ///< of float64
  std::vector<std::uint32_t> ends;  ///< where each row's run ends in `values`
  std::vector<std::uint8_t> marks;  ///< what `mark` said of each row
  /// One number per row, from its key and values: the same whatever source
  /// held them.
  std::vector<std::uint64_t> hashes;
  KeyList left_out;  ///< of rows that are too short or bad; no order

  std::int64_t rows() const { return static_cast<std::int64_t>(ends.size()); }
  std::span<const double> row(std::int64_t at) const;
};

/// A row that is left out because `source.on_bad` is `skip`, or that ends the
/// run because it is `stop`.
struct BadRow {
  Json key;               ///< null when the key itself could not be read
  std::string shown_key;  ///< "42", "'abc'"; empty without a key
  std::string column;
  std::string why;         ///< what was found and what was expected
  std::int64_t byte = -1;  ///< offset in the JSON text, when known
};

/// What was seen of each key of each json_set, and of the key to sort by, in
/// all elements of the kept rows; merged over all blocks before anything is
/// decided from it. Merging in another order changes nothing once it is sorted.
struct Seen {
  struct Key {
    std::int64_t numbers = 0;
    std::int64_t booleans = 0;
    std::string number_row, boolean_row;  ///< the smallest row seen, for errors
  };
  /// By field (empty for columns), by key; a `sort_by` that is none of the
  /// keys comes last.
  std::vector<std::vector<Key>> sets;
  std::int64_t too_short = 0;  ///< rows with fewer than `min` elements
  std::vector<BadRow> bad;

  void merge(Seen&& other);
  /// Brings `bad` into the order of keys: once, after the last merge.
  void sort();
};

/// Turns blocks into raw rows. One per thread: it owns scratch memory and
/// allocates nothing per row once warm.
class Preparer {
 public:
  /// The block's columns are: the key, those of `needed_columns(fields)`, and
  /// the split's column last when `by_column` is true (else rows are marked by
  /// their key). `mark` sees the bytes of that value: 8 of an integer (also
  /// of a whole float64 and of a boolean) or of a float64, little-endian; the
  /// text; the 16 of a uuid; none of a NULL. Without it all marks are 0.
  struct Options {
    std::vector<Field> fields;
    bool by_column = false;
    std::string by_name = {};  ///< of that column, for messages
    std::function<std::uint8_t(std::string_view by_value)> mark;
  };
  explicit Preparer(Options options);
  ~Preparer();
  Preparer(Preparer&&) noexcept;

  /// Bad rows and short rows go to `seen`, all others to the result. Throws
  /// nothing because of data.
  RawBlock prepare(const Block& block, Seen& seen);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The columns that fields read, each once, in order of first use.
struct NeededColumn {
  std::string name;
  bool json = false;         ///< else a number
  bool integer = false;      ///< a number that must keep its 64 bits
  bool rounded = false;      ///< a field makes it float32 without standardising
  std::string setting = {};  ///< who asks first: "fields.y.columns"
};
std::vector<NeededColumn> needed_columns(const std::vector<Field>& fields);

}  // namespace penstock
