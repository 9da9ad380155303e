#pragma once

#include <string>
#include <vector>

namespace penstock {

/// Rows of cells as lines of text, each column as wide as its widest cell, two
/// spaces between them. The first row is the heading. Cells are UTF-8; a
/// character counts as one place; what a terminal must not get is shown by
/// printable().
std::string table_text(const std::vector<std::vector<std::string>>& rows);

}  // namespace penstock
