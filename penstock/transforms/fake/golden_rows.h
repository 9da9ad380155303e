#pragma once

#include <string>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/key.h"

namespace penstock {

/// For tests: the table of tests/data/j1/golden.sqlite, rows in an order that
/// is not the key's. Columns: receivers, tx_lat, tx_lon, recorded_at, seen_at
/// (seconds since 1970). `keys` gets those of column `key` (id or name).
Block golden_block(const std::string& key, KeyList& keys);

/// The JSON texts of the golden rows.
std::vector<std::string> golden_texts();

}  // namespace penstock
