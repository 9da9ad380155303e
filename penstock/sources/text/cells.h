#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penstock/sources/text/number.h"
#include "penstock/sources/text/row_rules.h"

namespace penstock::text {

/// A cell without quotation marks.
struct Cell {
  std::string_view text;
  bool quoted = false;
};

/// What stands between marks around a cell; the cell if none exist.
inline std::string_view inside(std::string_view written, char quote) {
  const bool marks = written.size() >= 2 && written.front() == quote &&
                     written.back() == quote && quote != '\0';
  return marks ? written.substr(1, written.size() - 2) : written;
}

/// Takes the quotation marks from a cell as written; `plain` holds what
/// is then not as it was.
Cell cell_of(std::string_view written, char quote, std::string& plain);

/// The cells of a row as written.
std::vector<std::string_view> cells_of(std::string_view row,
                                       const RowRules& rules);

/// What cells look like, the narrower first. From `comma` on they are texts,
/// some of which are numbers where other marks are set: 1,5 has a decimal
/// `comma`; `grouped`, 1,234, may as well be one whose thousands are grouped,
/// as those of 1,234.5 and 1,234,567 are by `commas` and those of 1.234,5 by
/// `points`.
enum class Looks : unsigned char {
  nothing,
  boolean,
  integer,
  real,
  time,
  comma,
  grouped,
  commas,
  points,
  text
};

/// What holds both.
Looks wider(Looks a, Looks b);

/// Turns cells into values.
class CellReader {
 public:
  /// `thousands`: between groups of three digits; '\0': nothing is.
  CellReader(const std::vector<std::string>& na, char decimal,
             char quote = '\0', char thousands = '\0');

  bool is_na(const Cell& cell) const;
  /// A cell as written that is such a number. False: it is to be looked
  /// at in other ways. Memory as read_plain() needs it.
  template <class Number>
  bool plain_number(std::string_view written, Number& value) const {
    const char* begin = written.data();
    return plain_numbers_ &&
           read_plain(begin, begin + written.size(), decimal_, value);
  }
  Looks looks(const Cell& cell) const;
  /// Of a cell as written, in a ChunkBuffer.
  Looks looks(std::string_view written, std::string& plain) const;

  // False where the cell is no such value. Spaces around numbers do not count.
  template <class Number>
  bool number(std::string_view text, Number& value) const;
  static bool boolean(std::string_view text, bool& value);

 private:
  std::vector<std::string> na_;  // sorted
  bool starts_na_[256] = {};     // by the first byte
  bool empty_is_na_ = false;
  bool plain_numbers_ = true;  // are such, and not missing or in marks
  const char decimal_, quote_, thousands_;
};

/// Without spaces at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace penstock::text
