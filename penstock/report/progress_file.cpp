#include "penstock/report/progress_file.h"

#include <cmath>
#include <system_error>

#include "penstock/base/base.h"
#include "penstock/report/metrics/metrics.h"
#include "penstock/report/report_json.h"

namespace penstock {
namespace {

constexpr Nanoseconds kEvery = std::chrono::seconds(1);
constexpr Nanoseconds kJudgedEvery = std::chrono::seconds(5);

}  // namespace

ProgressFile::ProgressFile(const std::filesystem::path& folder, Whole whole)
    : file_(folder / "progress.json"), whole_(whole) {}

ProgressFile::~ProgressFile() {
  std::error_code none;
  std::filesystem::remove(file_, none);
}

void ProgressFile::step(const Now& now,
                        const std::function<Snapshot()>& window) try {
  if (fails_ || !point_) return;
  // Not of a job's own clock: others look at the file in theirs.
  const Nanoseconds at = wall_clock().now();
  if (written_.count() != 0 && at - written_ < kEvery) return;
  written_ = at;
  if (judged_.count() == 0 || at - judged_ >= kJudgedEvery) {
    judged_ = at;
    so_far_ = window_json(window());
  }
  Json json;
  json["at"] = seconds_since_1970();
  json["epoch"] = now.at.epoch;
  json["epochs"] = whole_.epochs;
  json["step"] = now.at.step;
  json["steps_per_epoch"] = whole_.steps_per_epoch;
  json["steps_taken"] = now.taken;
  json["steps"] = whole_.steps;
  Json& numbers = json["numbers"] = Json(Json::Object{});
  for (const auto& [name, value] : metrics_of(*point_, now.takes_time))
    if (name != "epoch" && std::isfinite(value)) numbers[name] = value;
  json["so_far"] = so_far_;
  real_files().write(file_, json.dump(1) + "\n", Lasting::later);
} catch (const Error& error) {
  fails_ = true;
  log(LogLevel::warning,
      std::string("the run continues without this file: ") + error.what());
}

}  // namespace penstock
