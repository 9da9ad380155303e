#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// A run that goes on, maybe in another program, seen from outside by the files
/// of its folder. Files that are missing or of another form are no error: what
/// they would tell is not known.
class LiveRun {
 public:
  /// `path`: a run folder or a link to one. Throws Error(request): there is no
  /// run (explain.no_run), or it has ended (monitor.run_ended).
  explicit LiveRun(const std::string& path);

  const std::filesystem::path& folder() const { return folder_; }
  /// The process that takes its steps, where it can be seen from here.
  std::optional<int> process() const;

  /// Reads the files again.
  void look();
  /// It has written its report.
  bool ended() const { return ended_; }
  /// The newest numbers, as shares in percent: {"run.au_percent", 71}, ...
  std::vector<std::pair<std::string, double>> numbers() const;
  /// "epoch 2/4 step 31/63 12,777 samples/s AU 71 % <- data 22 % ...".
  std::string line() const;
  /// {"folder", "ended", "epoch", "epochs", "step", "steps_per_epoch",
  /// "steps_taken", "steps", "seconds_since", "verdict"}: what is not known is
  /// null. Once it has ended the verdict is that of its report.
  Json json() const;
  /// "Input-bound: ..." in a sentence; empty where that is not known yet.
  std::string verdict() const;

 private:
  std::string unseen() const;
  /// The last step that it told.
  std::optional<double> seconds_since() const;
  std::filesystem::path folder_;
  Json run_, progress_;
  bool ended_ = false;
};

}  // namespace penstock
