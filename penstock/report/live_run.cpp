#include "penstock/report/live_run.h"

#include <algorithm>
#include <cmath>

#include "penstock/base/base.h"
#include "penstock/base/formatted.h"
#include "penstock/base/kernel_files.h"
#include "penstock/report/find_run.h"
#include "penstock/report/metrics/sink.h"
#include "penstock/report/report_facts.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr double kLongAgo = 15;  // seconds

/// Null where it is not there, or is no whole object.
Json object_in(const fs::path& file) {
  std::string ignored;
  return document_in(file, ignored).value_or(Json());
}

/// "2/4", counted from 1.
std::string of_all(const Json& json, const char* at, const char* all) {
  const auto one = number_in(json, {at}), whole = number_in(json, {all});
  if (!one) return "n/a";
  return formatted("%.0f", *one + 1) +
         (whole && *whole > 0 ? formatted("/%.0f", *whole) : "");
}

}  // namespace

LiveRun::LiveRun(const std::string& path) {
  const FoundRun found = find_run(path, "cannot watch the run");
  folder_ = text_in(found.report, {"run"});
  std::error_code none;
  if (found.report.find("unfinished") == nullptr ||
      !fs::is_directory(folder_, none))
    throw Error(ErrorKind::request, {.code = "monitor.run_ended",
                                     .what = "cannot watch the run",
                                     .where = path,
                                     .why = "the run has ended",
                                     .next = "'penstock explain " + path +
                                             "' shows what the run did"});
  run_ = object_in(folder_ / "run.json");
  look();
}

std::optional<int> LiveRun::process() const {
  const auto pid = number_in(run_, {"pid"});
  if (!pid || *pid < 1 || *pid > 1e9) return std::nullopt;
  const int process = static_cast<int>(*pid);
  // Another process may have got its number, or be of another machine.
  const auto began = number_in(run_, {"pid_began"});
  const auto seen = process_began(process);
  if (!seen || (began && *began != static_cast<double>(*seen)))
    return std::nullopt;
  return process;
}

std::string LiveRun::unseen() const {
  return process() ? "" : ", and its process is not visible";
}

void LiveRun::look() {
  if (Json report = object_in(folder_ / "report.json"); !report.is_null()) {
    ended_ = true;
    run_ = std::move(report);
    return;
  }
  if (Json progress = object_in(folder_ / "progress.json"); !progress.is_null())
    progress_ = std::move(progress);
}

std::vector<std::pair<std::string, double>> LiveRun::numbers() const {
  std::vector<std::pair<std::string, double>> all;
  auto add = [&](const char* key, const std::string& name, double factor = 1) {
    if (auto number = number_in(progress_, {"numbers", key}))
      all.emplace_back("run." + name, factor * *number);
  };
  if (ended_) return all;
  if (auto taken = number_in(progress_, {"steps_taken"}))
    all.emplace_back("run.steps_taken", *taken);
  add("samples_per_s", "samples_per_s");
  add("loss", "loss");
  add("au", "au_percent", 100);
  for (const char* part : {"wait_data", "wait_copy", "host", "sync"})
    add(part, part + std::string("_percent"), 100);
  add("cpus", "cpus");
  return all;
}

std::string LiveRun::line() const {
  if (ended_) return "the run has ended";
  if (progress_.is_null()) return "no step has been timed yet" + unseen();
  std::string line =
      "epoch " + of_all(progress_, "epoch", "epochs") + " step " +
      of_all(progress_, "step", "steps_per_epoch") + " " +
      shown_rate(number_in(progress_, {"numbers", "samples_per_s"})) +
      " samples/s";
  const auto au = number_in(progress_, {"numbers", "au"});
  line += au ? formatted(" AU %.0f %%", 100 * *au) : " AU n/a";
  const char* arrow = " <-";
  for (const auto& [key, shown, brief] : kParts) {
    const auto share = number_in(progress_, {"numbers", key});
    if (!share || *share < 0.005) continue;
    line += std::exchange(arrow, "") +
            formatted(" %s %.0f %%", brief, 100 * *share);
  }
  if (auto loss = number_in(progress_, {"numbers", "loss"}))
    line += formatted(" loss %.4g", *loss);
  const auto since = seconds_since();
  if (since && *since > kLongAgo)
    line += formatted(", last step %.0f s ago", *since) + unseen();
  return line;
}

std::optional<double> LiveRun::seconds_since() const {
  const auto at = number_in(progress_, {"at"});
  if (!at) return std::nullopt;
  return std::max(0.0, seconds_since_1970() - *at);
}

Json LiveRun::json() const {
  Json json;
  json["folder"] = folder_.string();
  json["ended"] = ended_;
  for (const char* key :
       {"epoch", "epochs", "step", "steps_per_epoch", "steps_taken", "steps"}) {
    const auto number = number_in(progress_, {key});
    json[key] = number ? Json(static_cast<std::int64_t>(*number)) : Json();
  }
  const auto since = seconds_since();
  json["seconds_since"] = since ? Json(*since) : Json();
  const Json* verdict = ended_ ? found_in(run_, {"verdict"})
                               : found_in(progress_, {"so_far", "verdict"});
  json["verdict"] = verdict != nullptr ? *verdict : Json();
  return json;
}

std::string LiveRun::verdict() const {
  if (ended_) return verdict_sentence(run_);
  const Json* so_far = found_in(progress_, {"so_far"});
  return so_far != nullptr && so_far->is_object() ? verdict_sentence(*so_far)
                                                  : "";
}

}  // namespace penstock
