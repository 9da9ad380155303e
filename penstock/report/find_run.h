#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// A run that was found on disk.
struct FoundRun {
  /// The document of report.json. Of a run that has none (it is still going on,
  /// or was killed) as much of one as run.json and steps.jsonl tell, and
  /// `"unfinished": true`.
  Json report;
  /// What a reader should know before: that it is not finished, was stopped, is
  /// of a newer version, or that a file is damaged.
  std::vector<std::string> notes;
};

/// The document of a file; none where it is not a JSON object. `why`: what is
/// wrong with it, empty where it is not there.
std::optional<Json> document_in(const std::filesystem::path& file,
                                std::string& why);

/// Looks for a run at `path`: a run folder, a link to one, or a report.json.
/// Throws Error(request), code explain.no_run, if none exists; `what` is
/// what cannot be done then.
FoundRun find_run(const std::string& path,
                  const char* what = "cannot explain the run");

}  // namespace penstock
