#pragma once

#include "penstock/base/settings.h"
#include "penstock/transforms/numbers/number_options.h"

namespace penstock {

/// Of the kind `column`, where there is one, or `columns`.
const SettingsTable<Numbers>& numbers_settings(bool single);

/// Neither float32 nor float64.
bool is_integer(Dtype dtype);

}  // namespace penstock
