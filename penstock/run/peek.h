#pragma once

#include <string>

#include "penstock/base/json.h"

namespace penstock {

/// A look at a source given as a URI: schema, number of rows, the first few
/// values, and how many rows per second a plain scan gives. Reads for at most
/// about two seconds.
Json peek(const std::string& uri);

}  // namespace penstock
