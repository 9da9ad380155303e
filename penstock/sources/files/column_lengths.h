#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::files {

/// A column, and how many rows it has: arrays of a file may differ in it.
struct ColumnLength {
  std::string name;
  std::int64_t rows = 0;
  bool windows = false;  ///< its rows are windows of it
};

/// "100 rows: 'X_train', 'y_train'; 20 rows: 'X_test' (windows)". Only the
/// first of many are named.
std::string shown_by_length(const std::vector<ColumnLength>& columns);

/// Why a column is left out of those that are read by default, which have
/// `rows` rows, and which columns can be read with it: "it has 20 rows, and
/// 'X_train', 'y_train' have 100: to read it, name it in 'fields' with
/// 'y_test'".
std::string why_other_length(const ColumnLength& column, std::int64_t rows,
                             const std::vector<ColumnLength>& all);

/// What to do about it.
inline constexpr const char* kNameOneLength =
    "name columns of one length in 'fields'";

}  // namespace penstock::files
