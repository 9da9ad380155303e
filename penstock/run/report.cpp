#include "penstock/run/report.h"

#include <chrono>
#include <limits>

#include "penstock/advisor/advisor.h"

namespace penstock {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// NaN where the device does not take time: JSON then shows null.
double utilisation(const StepParts& parts) {
  return parts.compute.count() > 0 ? parts.utilisation() : kUnknown;
}

Json parts_json(const StepParts& parts) {
  double wall = seconds(parts.wall);
  auto share = [&](Nanoseconds part) {
    return Json(wall > 0 ? seconds(part) / wall : kUnknown);
  };
  Json json;
  json["compute"] = share(parts.compute);
  json["wait_data"] = share(parts.wait_data);
  json["wait_copy"] = share(parts.wait_copy);
  json["host"] = share(parts.host);
  json["sync"] = share(parts.sync);
  return json;
}

Json stage_json(const StageNumbers& stage, double wall) {
  double busy = seconds(stage.busy_wall);
  double thread_time = wall * stage.workers;
  auto share = [&](Nanoseconds time) {
    return Json(thread_time > 0 ? seconds(time) / thread_time : kUnknown);
  };
  Json json;
  json["name"] = stage.name;
  json["workers"] = stage.workers;
  json["rate"] = busy > 0
                     ? stage.workers * static_cast<double>(stage.items) / busy
                     : kUnknown;
  json["busy"] = share(stage.busy_wall);
  json["cpu"] = share(stage.busy_cpu);
  json["blocked_get"] = share(stage.blocked_get);
  json["blocked_put"] = share(stage.blocked_put);
  json["bytes"] = stage.bytes;
  json["rows"] = stage.items;
  if (stage.calls > 0) json["statements"] = stage.calls;
  return json;
}

}  // namespace

std::int64_t RunNumbers::samples_timed() const {
  if (steps < 2) return 0;
  // The first step is as large as any other but for a short last batch.
  return samples - samples / steps;
}

Json run_json(const Job& job, const Device& device,
              const std::string& resumed) {
  Json json;
  json["version"] = 1;
  json["started"] = utc_text(std::chrono::system_clock::now());
  json["job"] = job.document;
  json["settings"] = resolved_settings(job, device);
  json["machine"] = machine_json();
  if (!resumed.empty()) json["resumed_from"] = resumed;
  return json;
}

Json report_json(const RunNumbers& run, const Job& job, const Dataset& dataset,
                 const Device& device) {
  const Snapshot& snapshot = run.snapshot;
  double wall = seconds(snapshot.parts.wall);
  Json json;
  json["run"] = run.folder;
  json["au"] = utilisation(snapshot.parts);
  json["parts"] = parts_json(snapshot.parts);
  json["steps"] = run.steps;
  json["samples"] = run.samples;
  json["samples_per_s"] =
      wall > 0 ? static_cast<double>(snapshot.samples) / wall : kUnknown;
  json["first_batch_ms"] =
      run.steps > 0 ? 1e3 * seconds(run.first_step - run.started) : kUnknown;
  json["epochs"] = Json::Array{};
  for (const auto& [epoch, samples] : run.samples_by_epoch) {
    Json entry;
    entry["epoch"] = epoch;
    auto parts = run.by_epoch.find(epoch);
    bool timed = parts != run.by_epoch.end();
    entry["seconds"] = timed ? seconds(parts->second.wall) : kUnknown;
    entry["au"] = timed ? utilisation(parts->second) : kUnknown;
    entry["samples"] = samples;
    entry["train_loss"] = nullptr;
    entry["val_loss"] = nullptr;
    json["epochs"].push_back(std::move(entry));
  }
  json["verdict"] = diagnose(snapshot).json();
  json["plan"] = dataset.plan().json();
  Json& data = json["dataset"];
  data["rows"] = dataset.rows();
  data["train"] = dataset.side(Side::train).size();
  data["val"] = dataset.side(Side::val).size();
  data["left_out"] = dataset.left_out();
  data["fingerprint"] = dataset.fingerprint();
  json["stages"] = Json::Array{};
  for (const StageNumbers& stage : snapshot.stages)
    json["stages"].push_back(stage_json(stage, wall));
  json["prepare"] = Json::Array{};
  for (const StageNumbers& stage : dataset.stages())
    json["prepare"].push_back(
        stage_json(stage, seconds(run.first_step - run.started)));
  json["machine"] = machine_json();
  if (snapshot.use.peak_bytes)
    json["machine"]["peak_bytes"] = *snapshot.use.peak_bytes;
  json["settings"] = resolved_settings(job, device);
  return json;
}

}  // namespace penstock
