#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/sources/files/windows.h"

namespace penstock::files {

/// Rows that could not be read, and why.
struct BadRows {
  std::int64_t first, end;
  std::string why;
};

/// The windows that bad elements make bad, each once; there are `rows`.
std::vector<BadRows> bad_windows(std::vector<BadRows> elements,
                                 const Windows& windows, std::int64_t rows);

/// Makes rows null: those of `bad`, each with a problem of column `at`.
void mark_bad(const std::vector<BadRows>& bad, std::size_t at, Column& column,
              std::vector<RowProblem>& problems);

}  // namespace penstock::files
