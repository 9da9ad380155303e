#pragma once

#include <string>
#include <string_view>

#include "penstock/base/json.h"

namespace penstock {

/// The document that `text` (YAML 1.1, UTF-8) holds, as JSON; an empty one is
/// an object without members. Plain scalars become null, booleans (`true`,
/// `yes`, `on`, ...), finite numbers or text; scalars in quotes and blocks are
/// text. An alias is a copy of what its anchor names, and `<<` adds the members
/// that a mapping does not have.
///
/// Throws Error(request), code manifest.yaml, with file:line, for text that
/// libyaml refuses, for a tag, a second document, a key that is not text or
/// that is given twice, for more than 64 levels, and for more than 100,000
/// values with the copies of aliases counted. `origin` names the file.
/// Thread-safe.
Json parse_yaml(std::string_view text, const std::string& origin);

}  // namespace penstock
