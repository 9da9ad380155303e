#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/transforms/field_kind.h"

namespace penstock {

/// What one number of a field (a key of a json_set, a column) is standardised
/// with: (value - mean) / divisor, and what was seen of its values.
struct Standardization {
  std::string name;
  bool boolean = false;
  bool standardize = false;  ///< asked for, and no boolean
  bool min_max = false;      ///< with the least value and the range in place of
                             ///< mean and divisor
  bool log1p = false;        ///< it is the log1p of the column's number
  double mean = 0;           ///< over the train rows; 0 when not standardised.
                             ///< A missing value becomes this one.
  double deviation = 0;      ///< population deviation, as measured
  double divisor = 1;        ///< the deviation, or 1 for a constant or no value
  std::int64_t count = 0;    ///< values that entered
  std::int64_t missing = 0;  ///< missing or null, over all kept rows
  bool fill_mean = false;    ///< the mean is to be found as the fill
  /// What a missing value becomes before standardising; none: see `mean`.
  std::optional<double> fill = {};
  /// Ascending, where a number becomes the number of those edges that are not
  /// above it; empty: it does not.
  std::vector<double> edges = {};
  /// Ascending: the values at equal steps of the train rows, the least and the
  /// greatest among them, where a number becomes its place among these, from 0
  /// to 1; empty: it does not.
  std::vector<double> quantiles = {};
  bool normal = false;  ///< and that place the number of a standard normal
                        ///< distribution which stands there
};

/// {"lat": {"boolean": false, "mean": ...}, ...}: a field's statistics.
Json json_of(const std::vector<Standardization>& numbers);

/// The statistics of numbers of which none is to be standardised or filled with
/// the mean; nullopt where one is.
std::optional<Json> unfitted_numbers(
    const std::vector<Standardization>& numbers);

/// What json_of() wrote, bit for bit. Throws Error(request) with `path` when it
/// is damaged or its numbers are not those with these names.
std::vector<Standardization> standardizations_from(
    const Json& statistics, const std::vector<std::string>& names,
    const std::string& path);

/// The same for whatever numbers the statistics hold, in their order.
std::vector<Standardization> standardizations_from(const Json& statistics);

/// What undoes a standardisation. The default one changes nothing.
struct Scale {
  double mean = 0;
  double divisor = 1;

  /// The number as it was before standardising.
  double restored(double standardised) const {
    return standardised * divisor + mean;
  }
};

/// That of a number, whether it was standardised or not.
inline Scale scale_of(const Standardization& number) {
  if (!number.standardize) return {};
  return {.mean = number.mean, .divisor = number.divisor};
}

/// Where a number is, for errors: "field 'r', key 'lat'".
struct NumberPlace {
  std::string field;
  std::string_view word;  ///< "key" or "column"

  std::string of(const std::string& name) const {
    return "field '" + field + "', " + std::string(word) + " '" + name + "'";
  }
};

/// Reads the numbers of a parsed row, one element after the other: as many
/// float64 as there are Standardizations, a missing value as NaN.
class NumberRows {
 public:
  virtual ~NumberRows() = default;
  /// The elements of a row; points into it, or to what the next call
  /// overwrites.
  virtual std::span<const double> numbers(ValueRow row) = 0;
  virtual std::unique_ptr<NumberRows> clone() const = 0;
  /// True where each row is one element of which no number is missing.
  virtual bool whole() const { return false; }
};

/// Of the flags that a fit is given.
std::int64_t train_rows(std::span<const std::uint8_t> train);
/// Error(transform), code transform.nothing_to_fit: no train row has a value.
Error nothing_to_fit(std::string where);

/// Finds the statistics of `numbers` (with their names and types filled in) in
/// float64, in two passes. Squares are scaled by a power of two, so that they
/// neither overflow nor vanish; that changes no bit where plain ones would not.
/// Values so far from their mean that the difference is beyond float64 are an
/// Error(transform), and so is a number to standardise or fill without a value.
std::unique_ptr<FieldFit> fit_numbers(std::vector<Standardization> numbers,
                                      NumberPlace place,
                                      std::unique_ptr<NumberRows> rows);

}  // namespace penstock
