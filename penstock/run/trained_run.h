#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/session/session.h"

namespace penstock {

/// The weights of a model where they lie in a file.
struct FileOfWeights {
  std::filesystem::path path;
  ModelState state;  ///< "model.NAME", views into `file`
  std::shared_ptr<FileMapping> file;
};

/// What predictions need of a run: a run folder, or what `--output` left.
struct TrainedRun {
  std::filesystem::path folder;
  /// The job, whose files are those that the folder holds.
  Job job;
  std::vector<Json> statistics;  ///< by field; null: it needs none
  /// The types of the columns that it read, as their source named them.
  std::vector<std::pair<std::string, std::string>> columns;

  FittedFields fitted() const { return {job.fields, statistics}; }
};

/// Throws Error(request): predict.no_run where `folder` is neither; where a
/// model of the user's own has changed since, predict.module_changed;
/// predict.no_model where the run trained none.
TrainedRun read_trained_run(const std::string& folder);

/// `weights/best.safetensors` of the run, else `weights/last.safetensors`, else
/// what `--output` left, else the newest checkpoint. Throws Error(request),
/// code predict.no_weights.
FileOfWeights read_weights(const TrainedRun& run);

}  // namespace penstock
