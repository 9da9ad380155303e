#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "penstock/monitor/monitor.h"
#include "penstock/sampling/sampling.h"
#include "penstock/session/session.h"

namespace penstock {

/// How far a run has come, for who looks from outside (LiveRun):
/// `progress.json` of its folder, replaced once a second while steps are taken,
/// and gone when the run has ended. One that cannot be written ends no run: the
/// log reports it, once. One thread.
class ProgressFile {
 public:
  struct Whole {
    std::int64_t epochs = 0;
    std::int64_t steps_per_epoch = 0;
    std::int64_t steps = 0;  ///< of the whole job
  };
  ProgressFile(const std::filesystem::path& folder, Whole whole);
  /// Removes it.
  ~ProgressFile();
  ProgressFile(const ProgressFile&) = delete;
  ProgressFile& operator=(const ProgressFile&) = delete;

  struct Now {
    Position at;             ///< of the last step
    std::int64_t taken = 0;  ///< steps, those before a resumption included
    bool takes_time = true;  ///< a step does
  };
  /// The newest numbers: written with the next step that is told.
  void add(const TimelineNumbers::Point& point) { point_ = point; }
  /// After each step. `window` gives all numbers up to now: what limits is
  /// looked for now and then.
  void step(const Now& now, const std::function<Snapshot()>& window);

 private:
  const std::filesystem::path file_;
  const Whole whole_;
  std::optional<TimelineNumbers::Point> point_;
  Json so_far_;
  Nanoseconds written_{}, judged_{};  // when, 0: not yet
  bool fails_ = false;
};

}  // namespace penstock
