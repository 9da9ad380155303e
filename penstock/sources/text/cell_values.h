#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/sources/files/row_file.h"
#include "penstock/sources/text/cells.h"
#include "penstock/sources/text/marks.h"
#include "penstock/sources/text/number_column.h"

namespace penstock::text {

/// What is wrong with a row, or with its cell for one column.
struct CellProblem {
  enum class What : std::uint8_t { cells, encoding, line_end, value };
  std::size_t row;
  std::size_t column;  ///< of those that are read
  What what;
};

/// Turns cells into columns of values. One thread's.
class CellValues {
 public:
  /// Rows have `cells` cells. Column c of a block is made of the cells
  /// number `places[c]`, as `columns` of the file say. All but the last must
  /// outlive it.
  CellValues(const CellReader& reader,
             const std::vector<files::FileColumn>& columns, char quote,
             std::vector<std::size_t> places);

  /// Of rows that lie in a ChunkBuffer. Problems come by row, then column.
  Block read(const CellGrid& grid, std::vector<CellProblem>& problems);

 private:
  /// Rows that are read together, column by column.
  struct Part {
    const CellGrid& grid;
    std::size_t begin, end;
    std::vector<CellProblem>& problems;
  };
  void read_part(const Part& part, Block& to);
  template <class Number>
  void read_numbers(const Part& part, std::size_t column, NumberColumn& to);
  void read_others(const Part& part, std::size_t column, Column& to);
  template <class Number>
  bool read_number(std::string_view written, std::size_t row,
                   std::size_t column, const Part& part, Number& value);

  const CellReader& reader_;
  const std::vector<files::FileColumn>& columns_;
  const char quote_;
  const std::vector<std::size_t> places_;
  std::vector<NumberColumn> numbers_;  // of a block, where it has such
  std::string plain_;
};

}  // namespace penstock::text
