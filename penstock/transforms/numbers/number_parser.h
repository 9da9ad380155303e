#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/numbers/number_row.h"

namespace penstock {

/// Parses columns of numbers into rows of that form. A row with a NULL or NaN
/// that is not masked, an infinity, or a number without a log1p where that is
/// taken, is rejected. `names` of the columns, for messages, must outlive it.
std::unique_ptr<FieldParser> number_parser(
    const std::vector<std::string>& names, FieldColumns columns, NumberRow row);

}  // namespace penstock
