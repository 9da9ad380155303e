#pragma once

#include "penstock/base/json.h"
#include "penstock/dataset/table/parsed_rows.h"

namespace penstock {

/// A bad row as stores keep it and ranks send it, and back.
Json json_of(const BadRow& bad);
BadRow bad_row_of(const Json& json);

/// The same of rows that are kept.
Json json_of(const DamagedRows& rows);
DamagedRows damaged_rows_of(const Json& json);

}  // namespace penstock
