#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/base/printable.h"

namespace penstock {

/// Rows of cells as lines of text, each column as wide as its widest cell, two
/// spaces between them. The first row is the heading. Cells are UTF-8; a
/// character counts as one place.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

/// The columns of a source as column_json() gives them, for people: type, share
/// of NULL, different values, range, and how the values are spread.
std::string columns_text(const Json& columns, std::int64_t rows);
/// What such a document says is left out; "" where it says nothing.
std::string left_out_text(const Json& document);

}  // namespace penstock
