#pragma once

#include "penstock/base/settings.h"
#include "penstock/job/loader_section.h"

namespace penstock {

/// Adds "cache" and "cache_dir" of the `loader` section: the name of a tier, or
/// an object with a budget for each.
SettingsTable<LoaderSection>& add_cache_settings(
    SettingsTable<LoaderSection>& table);

}  // namespace penstock
