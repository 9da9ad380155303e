#include "penstock/report/profile.h"

#include <algorithm>
#include <cstdio>

namespace penstock {

RunTrace::RunTrace(Of what, std::filesystem::path folder)
    : what_(what), file_(std::move(folder) / "trace.json") {
  if (what_ == Of::all) trace_.emplace();
}

void RunTrace::step(std::int64_t taken,
                    const std::function<void(const std::string&)>& note) {
  if (what_ != Of::steps) return;
  if (taken == kFirst - 1) trace_.emplace();
  if (taken == kLast) end(note);
}

void RunTrace::end(const std::function<void(const std::string&)>& note) {
  if (!trace_) return;
  what_ = Of::nothing;
  trace_->end();
  try {
    trace_->write(file_);
    if (note)
      note("the trace is in " + file_.string() +
           ": open it in ui.perfetto.dev or chrome://tracing");
  } catch (const Error& error) {
    log(LogLevel::warning, error.what());
  }
  trace_.reset();
}

std::optional<Nanoseconds> time_of(const StageNumbers& stage, double share) {
  const std::optional<Nanoseconds> time = stage.times.quantile(share);
  if (!time || stage.busy_wall.count() <= 0) return time;
  // Read at another moment, and where not each is timed, it may be beyond them.
  const Nanoseconds mean = stage.busy_wall / stage.times.count();
  if (share >= 1) return std::max(*time, mean);
  return stage.times.alike() ? mean : *time;
}

std::vector<std::string> timing_lines(const std::vector<StageNumbers>& stages) {
  std::vector<std::string> lines;
  for (const StageNumbers& stage : stages) {
    const std::int64_t times = stage.times.count();
    if (times == 0) continue;
    const double mean = seconds(stage.busy_wall) / static_cast<double>(times);
    char text[120];
    std::snprintf(text, sizeof(text), " > avg %.3g ms, max %.3g ms, %lld times",
                  1e3 * mean, 1e3 * seconds(*time_of(stage, 1)),
                  static_cast<long long>(times));
    lines.push_back(stage.name + text);
  }
  return lines;
}

}  // namespace penstock
