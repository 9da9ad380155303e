#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/base/setting_schema.h"
#include "penstock/base/spec.h"

namespace penstock {

/// The JSON Schema of a setting that is a number of rows from 1 to `most`, or
/// "auto".
Json auto_count_rule(std::int64_t most, std::string about);

/// What such a setting says, where it is there: a number, or nullopt for
/// "auto". Throws Error(request).
std::optional<std::int64_t> read_auto_count(Spec& spec,
                                            const SettingSchema& setting,
                                            std::int64_t most);

}  // namespace penstock
