#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "penstock/base/half.h"
#include "penstock/base/listed_numbers.h"
#include "penstock/base/with_number.h"
#include "penstock/sources/files/test_folder.h"

/// Rows of arrays, for tests.
namespace penstock::files {

inline ColumnRequest wanted(const std::string& column, std::int64_t window = 0,
                            std::int64_t stride = 0) {
  ColumnRequest request{
      .column = column, .as = ReadAs::value, .setting = "test"};
  request.window = window;
  request.stride = stride;
  return request;
}

/// The numbers of a row of lists or tensors, of any width.
inline std::vector<double> numbers_of(const ListedNumbers& row) {
  std::vector<double> numbers;
  auto add = [&]<class Number>(Number number, auto value_of) {
    for (std::int64_t at = 0; at < row.count; ++at) {
      std::memcpy(
          &number,
          row.bytes.data() + static_cast<std::size_t>(at) * sizeof(number),
          sizeof(number));
      numbers.push_back(static_cast<double>(value_of(number)));
    }
  };
  if (is_half(row.dtype))
    add(std::uint16_t{},
        [&](std::uint16_t bits) { return from_half(row.dtype, bits); });
  else
    with_number(row.dtype, [&]<class Number>(Typed<Number>) {
      add(Number{}, [](Number number) { return number; });
    });
  return numbers;
}

/// A row's numbers: "20 21 22"; a text unchanged.
inline std::string shown_numbers(const Column& column, std::int64_t row) {
  if (!column.valid(row)) return "null";
  if (column.type.is_text()) return std::string(column.text(row));
  auto number = [](double value) {
    return std::to_string(static_cast<std::int64_t>(value));
  };
  if (column.type.kind != ColumnKind::fixed &&
      column.type.kind != ColumnKind::list)
    return number(column.as_float64(row));
  std::string text;
  for (double value : numbers_of(*listed_numbers(column, row)))
    text += (text.empty() ? "" : " ") + number(value);
  return text;
}

/// All rows by a scan, with what is wrong in brackets, and the same rows read
/// backwards by position.
inline std::vector<std::string> rows_of(
    const Json& of, const std::vector<ColumnRequest>& columns) {
  std::vector<std::string> rows, again;
  try {
    auto source = open_files(of, columns);
    auto reader = open_checked_reader(*source);
    auto add = [&](Block& block, std::vector<std::string>& to) {
      for (std::int64_t row = 0; row < block.rows; ++row) {
        std::string text;
        for (const Column& column : block.columns)
          text += (&column == block.columns.data() ? "" : " | ") +
                  shown_numbers(column, row);
        to.push_back(text);
      }
      const std::size_t first =
          to.size() - static_cast<std::size_t>(block.rows);
      for (const RowProblem& problem : block.problems)
        to[first + static_cast<std::size_t>(problem.row)] +=
            " (" + problem.why + ")";
    };
    for (const Partition& part : source->partitions(2))
      reader->scan(part, {}, [&](KeyList&, Block& block) {
        add(block, rows);
        return true;
      });
    std::vector<std::int64_t> positions(rows.size());
    std::iota(positions.rbegin(), positions.rend(), 0);
    Block block;
    reader->read(positions, block);
    add(block, again);
    std::reverse(again.begin(), again.end());
    EXPECT_EQ(again, rows);
    EXPECT_EQ(source->count().rows, std::ssize(rows));
  } catch (const Error& error) {
    rows.push_back("error: " + error.parts().code + ": " + error.what());
  }
  return rows;
}

}  // namespace penstock::files
