#pragma once

#include <string>

#include "penstock/base/json.h"
#include "penstock/inspect/survey.h"

namespace penstock {

/// A look at a source, given as a URI or its section: of each column its type
/// and what the rows hold, the number of rows, the first few, and how many rows
/// per second a plain scan gives. Reads for at most about two seconds; `seen`
/// are the rows until then, which is what the columns tell of; `left_out` is
/// there where the source holds what is no column beside them.
Json peek(const Json& given);

/// Of a column: name, type, `index` as ColumnInfo has it, nulls, min, max,
/// distinct (an estimate where `distinct_exact` is false), and of numbers
/// `histogram`, of few values `top`.
Json column_json(const ColumnSurvey& column, std::int64_t rows);

/// Schema::left_out: [{name, why, next}].
Json left_out_json(const Schema& schema);

}  // namespace penstock
