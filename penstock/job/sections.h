#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/base/settings.h"
#include "penstock/job/loader_section.h"

namespace penstock {

/// Which weights of a model a run keeps.
enum class Keep : std::uint8_t {
  best,  ///< those of the best validation
  last,  ///< those after the last step
  both,
};

/// The `train` section but for what only a model needs.
struct TrainSection {
  std::int64_t epochs = 1;
  std::optional<std::int64_t> max_steps;
  /// Missing: a model is saved at the end of every epoch.
  std::optional<std::int64_t> checkpoint_every_steps;
  /// A model is validated after so many epochs, and after the last one.
  std::int64_t validate_every_epochs = 1;
  /// In place of that: after so many steps, and after the last one.
  std::optional<std::int64_t> validate_every_steps;
  /// A validation takes so many held-out rows, always the same; missing: all.
  std::optional<std::int64_t> validate_rows;
  /// Missing: the best where rows are held out, else the last.
  std::optional<Keep> keep;
  std::string metric = "loss";  ///< decides which weights are the best
  /// The run ends after so many validations without a better one; missing: it
  /// takes all its steps.
  std::optional<std::int64_t> patience;
  /// The job is trained so often, each time with another part of the rows held
  /// out; missing: once.
  std::optional<std::int64_t> folds;
  bool profile = false;  ///< a trace of some steps, and times of the stages
};

/// The `output` section.
struct OutputSection {
  std::string dir = "runs";
  bool tensorboard = false, csv = false, prometheus = false;
};

// The settings of the sections that no other room has.
const SettingsTable<LoaderSection>& loading_settings();
/// Of `train`, beside learning_settings().
const SettingsTable<TrainSection>& training_settings();
const SettingsTable<OutputSection>& output_settings();

}  // namespace penstock
