#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/sources.h"

namespace penstock {

/// Throws Error(request) where predictions cannot be written to this file:
/// predict.out_format for a name with another ending than .csv, .tsv, .jsonl,
/// .ndjson, .parquet, .pq, .arrow, .feather or .ipc; predict.out_folder where
/// it is a folder; predict.out_is_source where the rows are read from it.
void check_prediction_file(const std::string& path, const Json& source);

/// Writes the file in the format of its name. It is there, whole, once finish()
/// has returned, and until then what was there before.
std::unique_ptr<TableWriter> open_prediction_file(
    const std::string& path, const std::vector<NewColumn>& columns);

}  // namespace penstock
