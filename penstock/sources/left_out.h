#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace penstock {

/// Where a column is in a schema of nested fields: the place of each field on
/// the way to it, from 0 on, and its name.
struct ColumnPath {
  std::vector<std::size_t> places = {};
  std::vector<std::string> names = {};
};

/// "1" for the first column, "2.1" for the first member of the second one.
inline std::string shown_place(const std::vector<std::size_t>& places) {
  std::string text;
  for (std::size_t place : places)
    text += (text.empty() ? "" : ".") + std::to_string(place + 1);
  return text;
}

/// By column: why its name does not identify it, "columns 1 and 3 have this
/// name"; empty where it does. A member is named "struct.member".
inline std::vector<std::string> why_ambiguous(
    const std::vector<ColumnPath>& columns) {
  std::map<std::string, std::set<std::vector<std::size_t>>> found;
  auto each_prefix = [](const ColumnPath& column, auto use) {
    std::string name;
    for (std::size_t depth = 0; depth < column.names.size(); ++depth) {
      name += (depth == 0 ? "" : ".") + column.names[depth];
      const auto end =
          column.places.begin() + static_cast<std::ptrdiff_t>(depth + 1);
      use(name, std::vector<std::size_t>(column.places.begin(), end));
    }
  };
  for (const ColumnPath& column : columns)
    each_prefix(column, [&](const std::string& name, auto places) {
      found[name].insert(std::move(places));
    });
  std::vector<std::string> why(columns.size());
  for (std::size_t at = 0; at < columns.size(); ++at)
    each_prefix(columns[at], [&](const std::string& name, const auto&) {
      const auto& same = found[name];
      if (same.size() == 1 || !why[at].empty()) return;
      for (const std::vector<std::size_t>& places : same)
        why[at] += (why[at].empty() ? "" : " and ") + shown_place(places);
      why[at] = "columns " + why[at] + " have this name";
    });
  return why;
}

/// What can be done about such columns.
inline constexpr const char* kRenameColumns =
    "give each column a different name";

/// Why a column of a type that is not read is left out, and what can be done.
inline std::string why_unsupported(const std::string& type) {
  return "it is " + type + ", an unsupported type";
}
inline constexpr const char* kConvertColumn =
    "name other columns, or write this column with another type";

}  // namespace penstock
