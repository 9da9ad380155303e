#include "penstock/report/find_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/report/folds.h"
#include "penstock/report/report_facts.h"
#include "penstock/report/report_json.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const char* what, const std::string& where,
                         const std::string& why, const std::string& next) {
  throw Error(ErrorKind::request, {.code = "explain.no_run",
                                   .what = what,
                                   .where = where,
                                   .why = why,
                                   .next = next});
}

/// Adds up what steps.jsonl says, line by line: when each step was queued.
class QueuedSteps {
 public:
  void add(const Json& line) {
    auto epoch = number_in(line, {"epoch"}), at = number_in(line, {"seconds"}),
         rows = number_in(line, {"rows"});
    if (!epoch || !at || !rows || std::abs(*epoch) > 1e15) return;
    Epoch& of = epochs_[static_cast<std::int64_t>(*epoch)];
    if (of.steps == 0) of.begin = queued_.empty() ? *at : queued_.back().first;
    of.end = *at;
    ++of.steps;
    of.samples += *rows;
    queued_.emplace_back(*at, *rows);
    if (auto loss = number_in(line, {"loss"})) {
      of.loss += *loss;
      ++of.losses;
    }
  }
  void tell(Json& report) const {
    report["steps"] = steps();
    report["samples"] = static_cast<std::int64_t>(rows_behind(0));
    const std::size_t first = first_of_pace();
    const double rows = rows_behind(first + 1);
    const double time =
        queued_.empty() ? 0 : queued_.back().first - queued_[first].first;
    report["samples_per_s"] = time > 0 ? Json(rows / time) : Json();
    report["first_batch_ms"] = nullptr;
    report["epochs"] = Json::Array{};
    for (const auto& [number, epoch] : epochs_) {
      Json one;
      one["epoch"] = number;
      one["seconds"] = epoch.end - epoch.begin;
      one["samples"] = static_cast<std::int64_t>(epoch.samples);
      one["train_loss"] =
          epoch.losses > 0 ? Json(epoch.loss / double(epoch.losses)) : Json();
      report["epochs"].push_back(std::move(one));
    }
  }
  std::int64_t steps() const { return std::ssize(queued_); }

 private:
  struct Epoch {
    double begin = 0, end = 0, samples = 0, loss = 0;
    std::int64_t steps = 0, losses = 0;
  };
  /// Of the step `first` and all after it.
  double rows_behind(std::size_t first) const {
    double rows = 0;
    for (std::size_t i = first; i < queued_.size(); ++i)
      rows += queued_[i].second;
    return rows;
  }
  /// The step that starts the clock. The first ones are queued at once, as many
  /// as the device takes; it is the pace of those after them that counts.
  std::size_t first_of_pace() const {
    if (queued_.size() < kFewest) return 0;
    std::vector<double> gaps;
    for (std::size_t i = 1; i < queued_.size(); ++i)
      gaps.push_back(queued_[i].first - queued_[i - 1].first);
    std::vector<double> sorted = gaps;
    const auto middle =
        sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::ranges::nth_element(sorted, middle);
    std::size_t first = 0;
    while (first < gaps.size() / 2 && gaps[first] < *middle / 2) ++first;
    return first;
  }

  static constexpr std::size_t kFewest = 16;  // steps that show a pace
  std::map<std::int64_t, Epoch> epochs_;
  std::vector<std::pair<double, double>> queued_;  // when, and its rows
};

/// A last line that is cut off in the middle is no step.
QueuedSteps steps_in(const fs::path& file) {
  QueuedSteps steps;
  std::error_code none;
  if (!fs::exists(file, none)) return steps;
  const std::string text = real_files().read(file);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    try {
      steps.add(Json::parse(text.substr(at, end - at), file.string()));
    } catch (const Error&) {
      break;
    }
    at = end + 1;
  }
  return steps;
}

/// "3 s ago", of the file that was written last.
std::string last_sign_of(const fs::path& folder) {
  std::error_code none;
  std::optional<fs::file_time_type> newest;
  for (const char* name :
       {"run.json", "steps.jsonl", "state.json", "progress.json"}) {
    const fs::file_time_type time = fs::last_write_time(folder / name, none);
    if (!none) newest = std::max(newest.value_or(time), time);
  }
  if (!newest) return "at an unknown time";
  const auto age =
      std::chrono::duration<double>(fs::file_time_type::clock::now() - *newest);
  return shown_seconds(std::round(std::max(0.0, age.count()))) + " ago";
}

void note_version(const Json& document, std::vector<std::string>& notes) {
  auto version = number_in(document, {"version"});
  if (version && *version > double{kReportVersion})
    notes.push_back("the report was written by a newer Penstock (version " +
                    shown_number(*version) + ", this program knows " +
                    std::to_string(kReportVersion) +
                    "): only what this version knows is shown");
}

/// What a run that goes on, or was killed, had measured of itself.
void take_over(const Json& progress, Json& report) {
  const Json* verdict = found_in(progress, {"so_far", "verdict"});
  if (verdict == nullptr || !verdict->is_object()) return;
  for (const char* key : {"au", "rate", "parts", "stages", "verdict"})
    if (const Json* value = found_in(progress, {"so_far", key}))
      report[key] = *value;
}

/// What a run without report.json has left.
FoundRun unfinished(const fs::path& folder, const Json& run) {
  const QueuedSteps steps = steps_in(folder / "steps.jsonl");
  FoundRun found;
  found.report["run"] = folder.string();
  found.report["unfinished"] = true;
  for (const char* key : {"version", "machine", "settings"})
    if (const Json* value = run.find(key)) found.report[key] = *value;
  found.report["au"] = nullptr;
  Json& verdict = found.report["verdict"];
  verdict["limit"] = "unknown";
  verdict["cause"] = "the run has not written its report";
  verdict["no_action"] =
      "a run writes report.json when it ends or is interrupted; continue it "
      "with penstock train --resume " +
      folder.string();
  std::string why;
  const std::optional<Json> progress =
      document_in(folder / "progress.json", why);
  if (progress) take_over(*progress, found.report);
  steps.tell(found.report);
  note_version(run, found.notes);
  found.notes.push_back(
      "the run has no report.json: it is still running, or was killed. Its "
      "last sign of life was " +
      last_sign_of(folder) + ", " + std::to_string(steps.steps()) +
      (steps.steps() == 1 ? " step is written" : " steps are written"));
  return found;
}

FoundRun finished(Json report) {
  FoundRun found;
  note_version(report, found.notes);
  const Json* interrupted = report.find("interrupted");
  if (interrupted != nullptr && *interrupted == Json(true))
    found.notes.push_back(
        "the run was interrupted: the numbers cover what it did");
  found.report = std::move(report);
  return found;
}

/// Runs in this folder, for who names the folder of all runs.
std::string next_for(const fs::path& folder) {
  std::error_code none;
  if (fs::exists(folder / "latest", none))
    return "name a run in the folder: penstock explain " +
           (folder / "latest").string();
  return "name the folder of a run (output.dir/latest), or its report.json";
}

}  // namespace

std::optional<Json> document_in(const fs::path& file, std::string& why) {
  std::error_code none;
  if (!fs::exists(file, none)) return std::nullopt;
  try {
    Json json = Json::parse(real_files().read(file), file.string());
    if (json.is_object()) return json;
    why = "the file holds " + std::string(json.type_name()) +
          ", not a JSON object";
  } catch (const Error& error) {
    why = error.parts().why;
  }
  return std::nullopt;
}

FoundRun find_run(const std::string& path, const char* what) {
  std::error_code none;
  if (!fs::exists(path, none))
    refuse(what, path, "there is no such file or folder",
           "name the folder of a run (output.dir/latest), or its report.json");
  std::string why;
  if (!fs::is_directory(path, none)) {
    std::optional<Json> report = document_in(path, why);
    if (!report || (report->find("verdict") == nullptr && !has_folds(*report)))
      refuse(what, path,
             why.empty()
                 ? "the file is not the report of a run: it has no \"verdict\""
                 : why,
             "name a run folder or its report.json");
    return finished(std::move(*report));
  }
  // The run itself, where `latest` leads to it.
  const fs::path there = fs::canonical(path, none);
  const fs::path folder =
      fs::path(path).is_absolute() ? there : fs::proximate(there, none);
  std::optional<Json> report = document_in(folder / "report.json", why);
  if (report) return finished(std::move(*report));
  const std::string damage = why;
  std::optional<Json> run = document_in(folder / "run.json", why);
  const std::string no_run = why.empty() ? "the folder holds no run.json"
                                         : "run.json is damaged: " + why;
  if (!run && steps_in(folder / "steps.jsonl").steps() == 0)
    refuse(what, path,
           why.empty() ? "the folder holds neither report.json nor run.json"
                       : no_run,
           next_for(path));
  FoundRun found = unfinished(folder, run.value_or(Json(Json::Object{})));
  if (!damage.empty())
    found.notes = {"report.json is damaged: " + damage +
                   "; only what the other files hold is shown"};
  if (!run) found.notes.push_back(no_run + "; its steps are shown");
  return found;
}

}  // namespace penstock
