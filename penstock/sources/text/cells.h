#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penstock/sources/text/text_rows.h"

namespace penstock::text {

/// A cell of a row, without quotation marks.
struct Cell {
  std::string_view text;
  bool quoted = false;
};

/// Cuts rows into cells. One thread's; cells are good until the next row.
class Cells {
 public:
  explicit Cells(RowRules rules) : rules_(rules) {}
  const std::vector<Cell>& split(std::string_view row);

 private:
  void split_quoted(std::string_view row);

  const RowRules rules_;
  std::vector<Cell> cells_;
  std::string plain_;  // of cells that are not as they are written
};

/// What cells look like, the narrower first.
enum class Looks : unsigned char {
  nothing,
  boolean,
  integer,
  real,
  time,
  text
};

/// What holds both.
Looks wider(Looks a, Looks b);

/// Turns cells into values.
class CellReader {
 public:
  CellReader(const std::vector<std::string>& na, char decimal);

  bool is_na(const Cell& cell) const;
  Looks looks(const Cell& cell) const;

  // False where the cell is no such value. Spaces around numbers do not count.
  template <class Integer>
  static bool integer(std::string_view text, Integer& value);
  template <class Real>
  bool real(std::string_view text, Real& value) const;
  static bool boolean(std::string_view text, bool& value);

 private:
  std::vector<std::string> na_;  // sorted
  bool starts_na_[256] = {};     // by the first byte
  bool empty_is_na_ = false;
  const char decimal_;
};

/// Without spaces at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace penstock::text
