#pragma once

#include "penstock/job/job.h"

namespace penstock {

// The settings of the sections that no other room has.
const SettingsTable<Job::Loading>& loading_settings();
/// Of `train`, beside learning_settings().
const SettingsTable<Job::Training>& training_settings();
const SettingsTable<Job::Output>& output_settings();

}  // namespace penstock
