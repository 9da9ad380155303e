#include "penstock/sources/files/column_lengths.h"

#include <algorithm>

namespace penstock::files {
namespace {

constexpr std::size_t kMostShown = 4;

std::string rows_shown(std::int64_t rows) {
  return std::to_string(rows) + (rows == 1 ? " row" : " rows");
}

/// The names of columns of this length: "'x', 'y' and 3 more".
std::string names_of(const std::vector<ColumnLength>& all, std::int64_t rows) {
  std::string shown;
  std::size_t count = 0;
  for (const ColumnLength& column : all)
    if (column.rows == rows && ++count <= kMostShown)
      shown += (shown.empty() ? "'" : ", '") + column.name +
               (column.windows ? "' (windows)" : "'");
  if (count > kMostShown)
    shown += " and " + std::to_string(count - kMostShown) + " more";
  return shown;
}

}  // namespace

std::string shown_by_length(const std::vector<ColumnLength>& columns) {
  std::vector<std::int64_t> lengths;
  for (const ColumnLength& column : columns)
    if (std::ranges::find(lengths, column.rows) == lengths.end() &&
        lengths.size() <= kMostShown)
      lengths.push_back(column.rows);
  std::string shown;
  for (std::size_t at = 0; at < std::min(lengths.size(), kMostShown); ++at)
    shown += (at == 0 ? "" : "; ") + rows_shown(lengths[at]) + ": " +
             names_of(columns, lengths[at]);
  return lengths.size() > kMostShown ? shown + "; and others" : shown;
}

std::string why_other_length(const ColumnLength& column, std::int64_t rows,
                             const std::vector<ColumnLength>& all) {
  const auto of_default = std::ranges::count(all, rows, &ColumnLength::rows);
  std::vector<ColumnLength> others = all;
  std::erase_if(others, [&](const ColumnLength& one) {
    return one.name == column.name || one.rows != column.rows;
  });
  return "it has " + rows_shown(column.rows) + ", and " + names_of(all, rows) +
         (of_default == 1 ? " has " : " have ") + std::to_string(rows) +
         ": to read it, name it in 'fields' " +
         (others.empty() ? "alone" : "with " + names_of(others, column.rows));
}

}  // namespace penstock::files
