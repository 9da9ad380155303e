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
  bool standardize = false;  ///< asked for, and no boolean
  double mean = 0;           ///< over the train rows; 0 when not standardised.
                             ///< A missing value becomes this one.
  double deviation = 0;      ///< population deviation, as measured
  double divisor = 1;        ///< the deviation, or 1 for a constant or no value
  std::int64_t count = 0;    ///< values that entered
  std::int64_t missing = 0;  ///< missing or null, over all kept rows
};

/// The fitted numbers of all fields: saved with a run, applied to both sides.
struct Fitted {
  std::vector<std::vector<Standard>> fields;  ///< by field, by key or column
  /// {"receivers": {"lat": {"boolean": false, "mean": ...}, ...}, ...}
  Json json(const std::vector<Field>& fields_of_job) const;
};

/// What Fitted::json wrote, bit for bit. Throws Error(request) with the JSON
/// path when it is damaged or belongs to other fields.
Fitted fitted_from_json(const Json& json, const std::vector<Field>& fields,
                        const std::string& path);

using RangeWork = std::function<void(std::int64_t begin, std::int64_t end)>;
/// Calls `work` for ranges that make up [0, count), on several threads where
/// it pays.
using ShareOut = std::function<void(std::int64_t count, const RangeWork& work)>;

/// The rows of a data set in order of id.
struct RowsInOrder {
  std::int64_t count = 0;
  std::function<std::span<const double>(std::int64_t id)> row;
  std::function<bool(std::int64_t id)> is_train;
  ShareOut share_out = {};  ///< empty: all is done in place
};

/// Finds the statistics over the train rows, in float64, in two passes whose
/// sums run over fixed blocks of 1024 ids: threads, blocks and sources change
/// no bit. Squares are scaled by a power of two, so that they neither overflow
/// nor vanish; that changes no bit where plain ones would not.
/// `boolean_columns[f][c]` marks boolean columns of `columns` fields (an empty
/// list marks none). Throws Error(transform) when a key (of the tensor, or to
/// sort by) holds numbers and booleans, or when a value lies so far from the
/// mean that their difference is beyond float64.
Fitted fit(const std::vector<Field>& fields, const Seen& seen,
           const std::vector<std::vector<bool>>& boolean_columns,
           const RowsInOrder& rows);

}  // namespace penstock
