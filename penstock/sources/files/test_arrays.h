#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

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

/// A row's numbers: "20 21 22"; a text as it is.
inline std::string shown_numbers(const Column& column, std::int64_t row) {
  if (!column.valid(row)) return "null";
  if (column.type.is_text()) return std::string(column.text(row));
  auto number = [](double value) {
    return std::to_string(static_cast<std::int64_t>(value));
  };
  if (column.type.kind != ColumnKind::fixed)
    return number(column.as_float64(row));
  const ListedNumbers found = *listed_numbers(column, row);
  std::string text;
  with_number(found.dtype, [&]<class From>(Typed<From>) {
    for (std::int64_t i = 0; i < found.count; ++i) {
      From from{};
      std::memcpy(
          &from,
          found.bytes.data() + static_cast<std::size_t>(i) * sizeof(From),
          sizeof(From));
      text += (i == 0 ? "" : " ") + number(static_cast<double>(from));
    }
  });
  return text;
}

/// All rows by a scan, and the same rows read backwards by position.
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
