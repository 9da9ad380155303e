#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock {

/// Which columns pandas wrote as the index of a data frame: those that its
/// metadata of a schema names, and those that it named itself.
class PandasIndex {
 public:
  /// The text of the schema's key "pandas"; empty, or not pandas', where it
  /// has none.
  explicit PandasIndex(std::string_view metadata);
  /// ColumnInfo::index of a column of the schema's own.
  std::string of(std::string_view column) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace penstock
