#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "penstock/sources/sources.h"

namespace penstock {

/// What the rows of a table hold in one column.
struct ColumnSurvey {
  /// More different values than this are not counted.
  static constexpr std::size_t kMostValues = 1000;

  ColumnInfo info;
  ColumnType type;            ///< of its values; times are float64 seconds
  std::int64_t missing = 0;   ///< NULL, or NaN
  std::int64_t infinite = 0;  ///< numbers that are not finite, without NaN
  /// Rows by value, of texts, booleans and integers: a number as its decimal
  /// digits. Empty beyond kMostValues.
  std::map<std::string, std::int64_t, std::less<>> values;
  bool many_values = false;  ///< more than kMostValues
  double min = 0, max = 0;   ///< of numbers and times; both 0 without any
  bool counts_up = true;     ///< integers, each the one before it and 1
  bool whole_days = true;    ///< times, all at midnight UTC

  bool boolean() const {
    return info.boolean || type.kind == ColumnKind::boolean;
  }
  bool integer() const;
  /// Numbers that may have a fraction.
  bool real() const;
  bool text() const {
    return (type.is_text() && type != ColumnType::json) ||
           type.kind == ColumnKind::dictionary;
  }
};

/// What the rows of a table hold.
struct Survey {
  std::string shown;  ///< the source, without secrets
  std::int64_t rows = 0;
  std::vector<ColumnSurvey> columns;
};

/// Scans all rows of a source once. Holds at most kMostValues values of each
/// column. Throws what the source throws, and the error of an interrupted read
/// when `stop` is set.
Survey survey_rows(const SourceSpec& spec, StopFlag stop);

}  // namespace penstock
