#pragma once

#include <cstdint>
#include <string>

#include "penstock/base/json.h"

namespace penstock {

/// The columns of a source as column_json() gives them, for people: type, share
/// of NULL, different values, range, and how the values are spread.
std::string columns_text(const Json& columns, std::int64_t rows);
/// What such a document says is left out; "" where it says nothing.
std::string left_out_text(const Json& document);

}  // namespace penstock
