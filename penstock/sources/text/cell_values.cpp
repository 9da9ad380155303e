#include "penstock/sources/text/cell_values.h"

#include <algorithm>

#include "penstock/base/utf8.h"
#include "penstock/base/with_number.h"
#include "penstock/sources/text/text_file.h"

// Some hundred rows are read at a time, column by column: what a column's type
// asks for is decided once for all of them, and their text stays in a cache.

namespace penstock::text {
namespace {

using What = CellProblem::What;

constexpr std::size_t kRowsOfPart = 256;

}  // namespace

CellValues::CellValues(const CellReader& reader,
                       const std::vector<files::FileColumn>& columns,
                       char quote, std::vector<std::size_t> places)
    : reader_(reader),
      columns_(columns),
      quote_(quote),
      places_(std::move(places)),
      numbers_(places_.size()) {}

Block CellValues::read(const CellGrid& grid,
                       std::vector<CellProblem>& problems) {
  const std::size_t rows = grid.rows().size();
  Block block;
  block.rows = static_cast<std::int64_t>(rows);
  for (std::size_t c = 0; c < places_.size(); ++c) {
    const files::FileColumn& as = columns_[places_[c]];
    block.columns.emplace_back().type = as.type;
    if (is_number(as)) numbers_[c].start(as.type, rows);
  }
  for (std::size_t begin = 0; begin < rows; begin += kRowsOfPart)
    read_part({grid, begin, std::min(rows, begin + kRowsOfPart), problems},
              block);
  for (std::size_t c = 0; c < places_.size(); ++c)
    if (is_number(columns_[places_[c]]))
      block.columns[c] = numbers_[c].take(rows);
  std::ranges::stable_sort(problems, {}, &CellProblem::row);
  return block;
}

void CellValues::read_part(const Part& part, Block& to) {
  for (std::size_t c = 0; c < places_.size(); ++c) {
    const files::FileColumn& as = columns_[places_[c]];
    if (!is_number(as))
      read_others(part, c, to.columns[c]);
    else
      with_number(as.type.dtype, [&]<class Number>(Typed<Number>) {
        read_numbers<Number>(part, c, numbers_[c]);
      });
  }
}

template <class Number>
void CellValues::read_numbers(const Part& part, std::size_t column,
                              NumberColumn& to) {
  const std::size_t place = places_[column], cells = columns_.size();
  const CellGrid& grid = part.grid;
  auto* values = to.values<Number>();
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const CellGrid::Row& of = grid.rows()[row];
    if (of.cells == cells) [[likely]] {
      const std::string_view written = grid.cell(of, place);
      if (reader_.plain_number(written, values[row])) continue;
      if (read_number(written, row, column, part, values[row])) continue;
    } else {
      part.problems.push_back({row, column, What::cells});
    }
    to.set_missing(row);
  }
}

/// A cell that is not like most. False: it is missing, or no such number.
template <class Number>
bool CellValues::read_number(std::string_view written, std::size_t row,
                             std::size_t column, const Part& part,
                             Number& value) {
  if (reader_.plain_number(inside(written, quote_), value)) return true;
  const Cell cell = cell_of(written, quote_, plain_);
  if (cell.text.empty() || reader_.is_na(cell)) return false;
  if (reader_.number(cell.text, value)) return true;
  part.problems.push_back({row, column, What::value});
  return false;
}

void CellValues::read_others(const Part& part, std::size_t column, Column& to) {
  const std::size_t place = places_[column];
  const files::FileColumn& as = columns_[place];
  const bool is_text = to.type.is_text();
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const CellGrid::Row& of = part.grid.rows()[row];
    auto refuse = [&](What what) {
      part.problems.push_back({row, column, what});
      to.append_null();
    };
    if (of.cells != columns_.size()) {
      refuse(What::cells);
      continue;
    }
    const Cell cell = cell_of(part.grid.cell(of, place), quote_, plain_);
    if (reader_.is_na(cell) || (cell.text.empty() && !is_text))
      to.append_null();
    else if (is_text && !is_utf8(cell.text))
      refuse(What::encoding);
    else if (is_text && !cell.quoted && cell.text.find('\r') != cell.text.npos)
      refuse(What::line_end);
    else if (to.type.kind == ColumnKind::null ||
             !append_cell(reader_, cell.text, as, to))
      refuse(What::value);
  }
}

}  // namespace penstock::text
