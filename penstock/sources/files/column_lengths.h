#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace penstock::files {

/// A column, and how many rows it has: arrays of a file may differ in it.
struct ColumnLength {
  std::string name;
  std::int64_t rows = 0;
  bool windows = false;  ///< its rows are windows of it
};

/// Columns by their number of rows, for messages, in which only the first of
/// many are named.
class LengthGroups {
 public:
  explicit LengthGroups(const std::vector<ColumnLength>& columns);

  /// All have one number of rows.
  bool agree() const { return groups_.size() <= 1; }
  /// "100 rows: 'X_train', 'y_train'; 20 rows: 'X_test' (windows)".
  std::string shown() const;
  /// Why a column is left out of those that are read by default, which have
  /// `rows` rows, and which columns can be read with it: "it has 20 rows, and
  /// 'X_train', 'y_train' have 100: to read it, name it in 'fields' with
  /// 'y_test'".
  std::string why_left_out(const ColumnLength& column, std::int64_t rows) const;

 private:
  struct Group {
    std::int64_t rows = 0;
    std::size_t count = 0;
    std::vector<std::string> names = {};  ///< one more than are shown
  };
  /// "'x', 'y' and 3 more", but not `except`.
  static std::string names_of(const Group& group,
                              const std::string& except = {});

  std::vector<Group> groups_;
  std::unordered_map<std::int64_t, std::size_t> by_rows_;
};

/// What to do about a column that is left out.
inline constexpr const char* kNameOneLength =
    "name columns of one length in 'fields'";

}  // namespace penstock::files
