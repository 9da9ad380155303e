#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/sources.h"

namespace penstock {

using PrintText = std::function<void(const std::string&)>;

/// Shows the first rows of a table, once all are written, and how many more
/// there are: for a terminal.
std::unique_ptr<TableWriter> first_rows(const std::vector<NewColumn>& columns,
                                        PrintText print);

}  // namespace penstock
