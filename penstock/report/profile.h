#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "penstock/monitor/monitor.h"

namespace penstock {

/// Writes `trace.json` into a run's folder: of all that the run does, or of
/// steps kFirst to kLast. One thread, the loop's.
class RunTrace {
 public:
  enum class Of { nothing, steps, all };

  RunTrace(Of what, std::filesystem::path folder);
  /// So many steps of this run have been taken. `note` gets a line for people
  /// when the trace is there; may be empty.
  void step(std::int64_t taken,
            const std::function<void(const std::string&)>& note);
  /// The run ends. A trace that cannot be written ends no run: the log reports
  /// it.
  void end(const std::function<void(const std::string&)>& note);

  /// Long enough for the queues to have filled.
  static constexpr std::int64_t kFirst = 10, kLast = 30;

 private:
  Of what_;
  const std::filesystem::path file_;
  std::optional<Trace> trace_;
};

/// The time that `share` of a stage's pieces of work did not exceed, as its
/// Durations know it: where all took about as long it is their mean, and the
/// longest is never shorter than that. None where there were none.
std::optional<Nanoseconds> time_of(const StageNumbers& stage, double share);

/// What each stage took for a piece of work, one line each: "read > avg 25.3
/// ms, max 78.1 ms, 412 times".
std::vector<std::string> timing_lines(const std::vector<StageNumbers>& stages);

}  // namespace penstock
