#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/dataset/table/block_parser.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// How people find a row by position: by the name of its part, as pictures by
/// their paths, where its source says that such texts are their keys; else by
/// its number.
Json row_name(const Source& source, std::int64_t position);

/// The row of a key as in a message: "row 42", or by what people find it:
/// "row 'cats/1.jpg'", "row 50 (train.jsonl:51)".
std::string shown_row(const Source& source, const KeyList& keys,
                      std::int64_t at);

/// Names bad rows by position, or says where they are written, if that is
/// known.
void add_places(const Source& source, std::vector<BadRow>& bad);

/// Adds to `place` where people find a row of a source whose rows are in
/// parts: " of row 3 of 'b.csv'", or " of 'cats/1.jpg'" where that is all of
/// it. `parts` may be null, which adds nothing.
void add_row_place(const RowParts* parts, std::int64_t position,
                   std::string& place);

}  // namespace penstock
