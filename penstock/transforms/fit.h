#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/transforms/fields.h"
#include "penstock/transforms/prepare.h"

namespace penstock {

/// What one key of a json_set, or one column, is standardised with:
/// (value - mean) / divisor, and what a missing value becomes before that.
struct Standard {
  std::string name;
  bool boolean = false;
  bool standardize = false;
  double mean = 0;       ///< over the train rows; also what a missing one gets
  double deviation = 0;  ///< population deviation, as measured
  double divisor = 1;    ///< the deviation, or 1 for a constant or no value
  std::int64_t count = 0;    ///< values that entered
  std::int64_t missing = 0;  ///< missing or null, over all kept rows
};

/// The fitted numbers of all fields: saved with a run, applied to both sides.
struct Fitted {
  std::vector<std::vector<Standard>> fields;  ///< by field, by key or column
  Json json(const std::vector<Field>& fields_of_job) const;
};

/// The rows of a data set in order of id.
struct RowsInOrder {
  std::int64_t count = 0;
  std::function<std::span<const double>(std::int64_t id)> row;
  std::function<bool(std::int64_t id)> is_train;
};

/// Finds the statistics over the train rows, in float64, in two passes whose
/// sums run over fixed blocks of 1024 ids: threads, blocks and sources change
/// no bit. `boolean_columns[f][c]` marks boolean columns of `columns` fields.
/// Throws Error(transform) when a key holds numbers and booleans.
Fitted fit(const std::vector<Field>& fields, const Seen& seen,
           const std::vector<std::vector<bool>>& boolean_columns,
           const RowsInOrder& rows);

}  // namespace penstock
