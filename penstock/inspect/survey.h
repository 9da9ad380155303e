#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "penstock/base/random.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// How many different values there are, from their hashes: the 1,024 least of
/// them are kept, and how close they lie tells how many there are (Bar-Yossef
/// and others, 2002).
class DistinctValues {
 public:
  void add(std::uint64_t hash);
  void add(const DistinctValues& others);
  /// Exact up to 1,023, else within about 3 %.
  std::int64_t count() const;
  bool exact() const { return least_.size() < kKept; }

 private:
  static constexpr std::size_t kKept = 1024;
  std::set<std::uint64_t> least_;
};

/// What the rows of a table hold in one column.
struct ColumnSurvey {
  /// More different values than this are not counted.
  static constexpr std::size_t kMostValues = 1000;
  static constexpr std::size_t kSample = 1024;

  ColumnInfo info;
  ColumnType type;            ///< of its values; times are float64 seconds
  std::int64_t missing = 0;   ///< NULL, or NaN
  std::int64_t infinite = 0;  ///< numbers that are not finite, without NaN
  /// Rows by value, of texts, booleans and integers: a number as its decimal
  /// digits; also of numbers none of which has a fraction. Empty beyond
  /// kMostValues.
  std::map<std::string, std::int64_t, std::less<>> values;
  bool many_values = false;  ///< more than kMostValues
  double min = 0, max = 0;   ///< of numbers and times; both 0 without any
  /// Of integers, exactly; of uint64 at most what int64 holds.
  std::int64_t least = 0, greatest = 0;
  std::string first, last;  ///< of texts, by their first 200 bytes
  DistinctValues distinct;
  std::vector<double> sample;  ///< at most kSample of the numbers, at random
  bool whole = true;           ///< numbers, none of which has a fraction
  bool counts_up = true;       ///< integers, each the one before it and 1
  bool whole_days = true;      ///< times, all at midnight UTC

  bool boolean() const {
    return info.boolean || type.kind == ColumnKind::boolean;
  }
  bool integer() const;
  /// Numbers that may have a fraction.
  bool real() const;
  /// No two numbers of it differ.
  bool one_number() const {
    return min == max && (!integer() || least == greatest);
  }
  /// There is a value at all.
  bool any(std::int64_t rows) const { return missing < rows; }
  /// Rows of `sample` in so many ranges of equal width from min to max.
  std::vector<std::int64_t> histogram(std::size_t ranges) const;
  bool text() const {
    return (type.is_text() && type != ColumnType::json) ||
           type.kind == ColumnKind::dictionary;
  }
};

/// What the rows of a table hold.
struct Survey {
  std::string shown;  ///< the source, without secrets
  std::int64_t rows = 0;
  std::int64_t bad_rows = 0;  ///< with a cell that is not what its column holds
  std::vector<ColumnSurvey> columns;
};

/// Looks at rows, block by block. One per thread.
class Surveyor {
 public:
  /// `source` was opened for surveyed_columns(schema), and maybe others behind
  /// them.
  Surveyor(const Schema& schema, const Source& source);
  void add(const Block& block);
  /// The rows that another one has seen; that integers count up is then not
  /// known.
  void add(const Surveyor& other);
  const Survey& survey() const { return survey_; }

 private:
  struct Numbers {
    Random random;
    std::int64_t seen = 0;
    std::int64_t last = 0;
  };
  void add(std::size_t column, const Column& values);
  void value(std::size_t column, const Column& values, std::int64_t row);
  void text(std::size_t column, std::string_view text);
  void integer(std::size_t column, std::int64_t value);
  void real(std::size_t column, double value);
  /// True for the first number. `hash`: of the value.
  bool number(std::size_t column, double value, std::uint64_t hash);

  Survey survey_;
  std::vector<Numbers> numbers_;  // by column
};

/// The columns of a source that can be read beside each other, unchanged
/// taken where no field names them. Throws Error(request), source.unclear,
/// where the source doubts what one holds; tells its other doubts to the log.
Schema surveyed_schema(const SourceSpec& spec);

/// All columns, as ColumnInfo::as says; a time is a number.
std::vector<ColumnRequest> surveyed_columns(const Schema& schema);

/// Scans all rows of a source once. Holds at most kMostValues values of each
/// column. Throws what opening the source for a job throws, and the error of an
/// interrupted read when `stop` is set.
Survey survey_rows(const SourceSpec& spec, StopFlag stop);
/// Of the columns of `schema`, which is part of the source's, alone.
Survey survey_columns(const SourceSpec& spec, const Schema& schema,
                      StopFlag stop);

}  // namespace penstock
