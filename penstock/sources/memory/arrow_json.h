#pragma once

#include <string>

#include "penstock/sources/memory/arrow_abi.h"

namespace penstock {

/// Whether values of this schema, and all that is in them, have a form in JSON:
/// numbers, decimals, booleans, texts, and lists, maps and structs
/// of these.
bool has_json(const ArrowSchema& schema);

/// The value at a place of the array's buffers, as JSON text, appended.
void append_json(const ArrowSchema& schema, const ArrowArray& array,
                 std::int64_t at, std::string& text);

}  // namespace penstock
