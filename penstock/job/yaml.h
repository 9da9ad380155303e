#pragma once

#include <string>
#include <string_view>

#include "penstock/base/json.h"

namespace penstock {

/// Settings written as YAML: mappings and lists by indentation or in braces and
/// brackets, texts in quotes or without, numbers, booleans (true, yes, on,
/// ...), null, comments. Throws Error(request), code manifest.yaml, with
/// file:line, for all else (anchors, tags, blocks of text, several documents),
/// a key that is given twice, and more than 64 levels.
Json parse_yaml(std::string_view text, const std::string& origin);

}  // namespace penstock
