#include "penstock/sources/files/column_lengths.h"

#include <algorithm>

namespace penstock::files {
namespace {

constexpr std::size_t kMostShown = 4;

std::string rows_shown(std::int64_t rows) {
  return std::to_string(rows) + (rows == 1 ? " row" : " rows");
}

std::string quoted(const ColumnLength& column) {
  return "'" + column.name + (column.windows ? "' (windows)" : "'");
}

}  // namespace

LengthGroups::LengthGroups(const std::vector<ColumnLength>& columns) {
  for (const ColumnLength& column : columns) {
    const auto [at, is_new] = by_rows_.try_emplace(column.rows, groups_.size());
    if (is_new) groups_.push_back({.rows = column.rows});
    Group& group = groups_[at->second];
    if (++group.count <= kMostShown + 1) group.names.push_back(quoted(column));
  }
}

std::string LengthGroups::names_of(const Group& group,
                                   const std::string& except) {
  std::string shown;
  std::size_t named = 0;
  for (const std::string& name : group.names)
    if (name != except && named < kMostShown) {
      shown += (named == 0 ? "" : ", ") + name;
      ++named;
    }
  const std::size_t rest = group.count - named - (except.empty() ? 0 : 1);
  return rest == 0 ? shown : shown + " and " + std::to_string(rest) + " more";
}

std::string LengthGroups::shown() const {
  std::string shown;
  for (std::size_t at = 0; at < std::min(groups_.size(), kMostShown); ++at)
    shown += (at == 0 ? "" : "; ") + rows_shown(groups_[at].rows) + ": " +
             names_of(groups_[at]);
  return groups_.size() > kMostShown ? shown + "; and others" : shown;
}

std::string LengthGroups::why_left_out(const ColumnLength& column,
                                       std::int64_t rows) const {
  const Group& own = groups_[by_rows_.at(column.rows)];
  const Group& read = groups_[by_rows_.at(rows)];
  return "the column has " + rows_shown(column.rows) + ", but " +
         names_of(read) + (read.count == 1 ? " has " : " have ") +
         std::to_string(rows) + ": to read it, name it in 'fields' " +
         (own.count == 1 ? "alone" : "with " + names_of(own, quoted(column)));
}

}  // namespace penstock::files
