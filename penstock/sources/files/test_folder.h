#pragma once

#include <string>

#include "penstock/base/error.h"
#include "penstock/base/fake/test_folder.h"
#include "penstock/sources/sources.h"

namespace penstock::files {

using penstock::TestFolder;

/// A `source` section, or a URI.
inline std::unique_ptr<Source> open_files(
    const Json& section, const std::vector<ColumnRequest>& requests) {
  return open_source(parse_source_spec(section, "source"), requests);
}
inline Json section_of(const std::string& kind, const std::string& path) {
  Json section;
  section["kind"] = kind;
  section["path"] = path;
  return section;
}

/// All rows of all columns as text: "1 | null | abc", with "!" for problems,
/// and what is wrong when they cannot be read.
inline std::vector<std::string> shown_rows(
    const Json& section, std::vector<std::string> columns = {},
    ReadAs as = ReadAs::value) {
  std::vector<std::string> rows;
  try {
    if (columns.empty())
      for (const ColumnInfo& column :
           read_schema(parse_source_spec(section, "source")).columns)
        columns.push_back(column.name);
    std::vector<ColumnRequest> requests;
    for (const std::string& column : columns)
      requests.push_back({.column = column, .as = as, .setting = "test"});
    auto source = open_files(section, requests);
    auto reader = open_checked_reader(*source);
    for (const Partition& part : source->partitions(1))
      reader->scan(part, {}, [&](KeyList&, Block& block) {
        for (std::int64_t row = 0; row < block.rows; ++row) {
          std::string text;
          for (const Column& column : block.columns) {
            if (&column != block.columns.data()) text += " | ";
            if (!column.valid(row))
              text += "null";
            else if (column.type.is_text() ||
                     column.type.kind == ColumnKind::binary)
              text += column.text(row);
            else if (column.type.kind == ColumnKind::list)
              text += "list of " + std::to_string(column.offset(row + 1) -
                                                  column.offset(row));
            else if (column.type.kind == ColumnKind::fixed)
              text += "tensor" + text_of(column.item);
            else
              text += Json(column.as_float64(row)).dump();
          }
          for (const RowProblem& problem : block.problems)
            if (problem.row == row) text += "! " + problem.why;
          rows.push_back(text);
        }
        return true;
      });
  } catch (const Error& error) {
    rows.push_back(std::string("error: ") + error.what());
  }
  return rows;
}

}  // namespace penstock::files
