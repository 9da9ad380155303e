#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/run/run.h"

namespace penstock {

/// Writes predictions to standard output: CSV to a pipe or a file, and to a
/// terminal a table of the first rows.
std::unique_ptr<TableWriter> predictions_to_output(
    const std::vector<NewColumn>& columns);

}  // namespace penstock
