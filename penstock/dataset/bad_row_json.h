#pragma once

#include "penstock/base/json.h"
#include "penstock/dataset/block_parser.h"

namespace penstock {

/// A bad row as stores keep it, and back.
Json json_of(const BadRow& bad);
BadRow bad_row_of(const Json& json);

}  // namespace penstock
