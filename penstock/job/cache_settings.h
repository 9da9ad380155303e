#pragma once

#include "penstock/base/settings.h"
#include "penstock/job/job.h"

namespace penstock {

/// Adds "cache" and "cache_dir" of the `loader` section: the name of a tier, or
/// an object with a budget for each.
SettingsTable<Job::Loading>& add_cache_settings(
    SettingsTable<Job::Loading>& table);

}  // namespace penstock
