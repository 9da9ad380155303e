#include "penstock/report/report_json.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string_view>
#include <utility>

#include "penstock/advisor/advisor.h"
#include "penstock/base/held_memory.h"
#include "penstock/base/json_path.h"
#include "penstock/base/kernel_files.h"
#include "penstock/base/shown.h"
#include "penstock/dataset/dataset.h"
#include "penstock/report/findings.h"
#include "penstock/report/known_key.h"
#include "penstock/report/outcomes_json.h"
#include "penstock/report/profile.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// NaN where the device does not take time: JSON then shows null.
double utilisation(const StepParts& parts) {
  return parts.steps_take_time() ? parts.utilisation() : kUnknown;
}

/// The machine in its present state, with its GPU where the device is one.
Json machine_of(const Device& device) {
  Json json = machine_json();
  if (std::optional<GpuUse> gpu = read_gpu_use(device))
    json["gpu"] = gpu->json();
  return json;
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

/// `rows`: of the source in a sample.
Json stage_json(const StageNumbers& stage, double wall, double rows) {
  double busy = seconds(stage.busy_wall);
  // Without workers of its own a stage is done on the consumer's thread.
  int threads = std::max(1, stage.workers);
  double thread_time = wall * threads;
  auto share = [&](std::optional<Nanoseconds> time) {
    // A piece of work that began before the window counts when it ends.
    return Json(time && thread_time > 0
                    ? std::min(1.0, seconds(*time) / thread_time)
                    : kUnknown);
  };
  Json json;
  json["name"] = stage.name;
  json["workers"] = stage.workers;
  if (!stage.pool.empty()) json["pool"] = stage.pool;
  json["rate"] = busy > 0
                     ? threads * static_cast<double>(stage.items) / rows / busy
                     : kUnknown;
  bool timed = stage.busy_wall.count() > 0;
  json["busy"] = timed ? share(stage.busy_wall) : Json();
  json["cpu"] = timed ? share(stage.busy_cpu) : Json();
  auto quantile_ms = [&](double of) {
    std::optional<Nanoseconds> time = time_of(stage, of);
    return Json(time ? 1e3 * seconds(*time) : kUnknown);
  };
  json["p50_ms"] = quantile_ms(0.5);
  json["p99_ms"] = quantile_ms(0.99);
  json["max_ms"] = quantile_ms(1);
  json["blocked_get"] = share(stage.blocked_get);
  json["blocked_put"] = share(stage.blocked_put);
  json["bytes"] = stage.bytes;
  json["rows"] = stage.items;
  if (stage.calls > 0) json["statements"] = stage.calls;
  return json;
}

Json rows_json(const Dataset& rows);

/// Of all sources, and of each as of one alone.
Json mixed_json(const Dataset& mixed, Json json) {
  json["fingerprint"] = mixed.fingerprint();
  const auto& mixture = mixed.facts().mixture;
  if (mixture != nullptr) json["epoch_rows"] = mixture->epoch_samples();
  const std::vector<MixedRows>& parts = mixed.facts().parts;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    Json source = rows_json(*parts[s].rows);
    source["weight"] = parts[s].weight;
    source["epoch_rows"] = mixture == nullptr ? 0 : mixture->taken()[s];
    json["sources"].push_back(std::move(source));
  }
  return json;
}

/// Of categories.
void add_classes(const FittedFields& of, Json& json) {
  for (const Field& field : of.fields)
    if (field.kind->facts().one_class())
      json["classes"][field.name] =
          Json(class_names(field, of.statistics_of(field.name)));
}

/// The fingerprint of arrays could take long.
Json rows_json(const Dataset& rows) {
  Json json;
  const DatasetFacts& facts = rows.facts();
  const bool endless = facts.endless;
  json["rows"] = endless ? Json() : Json(rows.rows());
  json["train"] = endless ? Json() : Json(rows.rows_on(Side::train));
  json["val"] = rows.rows_on(Side::val);
  json["test"] = rows.rows_on(Side::test);
  if (!facts.parts.empty()) return mixed_json(rows, std::move(json));
  if (facts.preparations.size() == 1)
    json["preparation"] = facts.preparations[0]->json();
  const bool read =  // by position, and each row by itself
      facts.fitted != nullptr && facts.scan == nullptr && facts.bins == nullptr;
  if (read) add_classes(*facts.fitted, json);
  if (read || facts.later != nullptr) json["fingerprint"] = rows.fingerprint();
  if (facts.bins != nullptr)
    json["packing"] = facts.bins->numbers(Side::train).json();
  if (facts.scan == nullptr) return json;
  json["left_out"] = facts.scan->left_out();
  add_classes(*facts.fitted, json);
  json["fingerprint"] = rows.fingerprint();
  return json;
}

Json worst_steps_json(const RunNumbers& run, const Dataset* rows) {
  Json json{Json::Array{}};
  for (const WorstStep& step : run.worst_steps) {
    Json entry;
    entry["epoch"] = step.at.epoch;
    entry["step"] = step.at.step < 0 ? Json() : Json(step.at.step);
    entry["ms"] = 1e3 * seconds(step.parts.wall);
    entry["parts"] = parts_json(step.parts);
    entry["samples"] = Json::Array{};
    for (SampleId sample : step.samples)
      if (rows != nullptr)
        entry["samples"].push_back(known_key_of(*rows, sample));
    json.push_back(std::move(entry));
  }
  return json;
}

/// What the model came to in the last epoch that was measured, by side:
/// {"train": {"loss": ...}, "val": {"loss": ..., "accuracy": ...}}.
Json metrics_json(const RunNumbers& run) {
  Json json{Json::Object{}};
  for (const auto& [number, epoch] : run.epochs) {
    if (epoch.train_loss) json["train"]["loss"] = *epoch.train_loss;
    if (epoch.validated.object().empty()) continue;
    json["val"] = reported_measures(epoch.validated);
  }
  return json;
}

Json best_json(const Best& best) {
  Json json;
  json["epoch"] = best.epoch;
  json["step"] = best.step;
  json["metric"] = best.metric;
  json["value"] = best.value;
  return json;
}

Json stages_json(const Snapshot& window) {
  Json json{Json::Array{}};
  for (const StageNumbers& stage : window.stages)
    json.push_back(
        stage_json(stage, seconds(window.parts.wall), rows_per_sample(window)));
  return json;
}

double samples_per_s(const StepParts& parts) {
  double wall = seconds(parts.wall);
  return wall > 0 ? static_cast<double>(parts.samples) / wall : kUnknown;
}

}  // namespace

Json window_json(const Snapshot& window) {
  Json json;
  json["au"] = utilisation(window.parts);
  json["rate"] = samples_per_s(window.parts);
  json["parts"] = parts_json(window.parts);
  json["stages"] = stages_json(window);
  json["verdict"] = diagnose(window).json();
  return json;
}

Json epoch_json(const RunNumbers& run, std::int64_t number) {
  const RunNumbers::Epoch& epoch = run.epochs.at(number);
  bool timed = epoch.parts.steps > 0;
  Json json;
  json["epoch"] = number;
  json["seconds"] = timed ? seconds(epoch.parts.wall) : kUnknown;
  json["au"] = timed ? utilisation(epoch.parts) : kUnknown;
  json["samples"] = epoch.samples;
  json["train_loss"] = epoch.train_loss.value_or(kUnknown);
  json["val_loss"] = nullptr;
  for (const auto& [name, value] : epoch.validated.object()) json[name] = value;
  auto use = run.timeline.epochs.find(number);
  if (use != run.timeline.epochs.end()) json["use"] = use->second.json();
  return json;
}

Json run_json(const Job& job, const Device& device, const std::string& resumed,
              std::int64_t skipped) {
  Json json;
  json["version"] = kReportVersion;
  json["started"] = utc_text(std::chrono::system_clock::now());
  json["pid"] = std::int64_t{::getpid()};
  if (auto began = process_began(::getpid())) json["pid_began"] = *began;
  json["job"] = without_secrets(job.document);
  json["settings"] = resolved_settings(job, device);
  json["machine"] = machine_of(device);
  if (!resumed.empty()) json["resumed_from"] = resumed;
  if (skipped != 0) json["skipped_steps"] = skipped;
  json["effective"] = Json::Object{};  // until a model says what is in force
  return json;
}

namespace {

/// Of what counts against the device's memory; null: the model's is not known.
Json peak_json(const RunNumbers& run, const Device& device) {
  if (!run.model_peak) return {};
  const DataMemory data = data_memory(device).peak;
  Json json;
  json["parameters"] = run.model_peak->parameters;
  json["gradients"] = run.model_peak->gradients;
  json["optimizer"] = run.model_peak->optimizer;
  json["activations"] = run.model_peak->activations;
  json["cache"] = data.cache;
  json["look_ahead"] = data.look_ahead;
  return json;
}

/// What the plan said, beside it what the process and the device have now, and
/// what all loaders of the process hold, by what for.
Json memory_json(const TierPlan& plan, const RunNumbers& run,
                 const Device& device) {
  std::size_t host = 0, there = 0, disk = 0;
  for (const TierPlan::Line& line : plan.lines) {
    if (!line.chosen) continue;
    host += line.host_bytes;
    there += line.device_bytes;
    disk += line.disk_bytes;
  }
  Json json;
  Json& planned = json["planned"];
  planned["host_bytes"] = host;
  planned["device_bytes"] = there;
  planned["disk_bytes"] = disk;
  Json& used = json["used"];
  auto shown = [](const std::optional<MemoryShare>& share, bool files) {
    return share ? Json(files ? share->files : share->anonymous) : Json();
  };
  std::optional<MemoryShare> now = read_memory_share();
  used["host_bytes"] = shown(now, false);
  used["host_bytes_before"] = shown(run.before, false);
  used["mapped_bytes"] = shown(now, true);
  used["mapped_bytes_before"] = shown(run.before, true);
  const std::optional<std::size_t>& peak = run.snapshot.use.peak_bytes;
  used["peak_bytes"] = peak ? Json(*peak) : Json();
  DeviceUse of_device = read_device_use(device);
  used["device_bytes"] = of_device.used ? Json(*of_device.used) : Json();
  json["held"] = Json(Json::Array{});
  for (const HeldMemory& held : held_memory()) {
    if (held.peak == 0) continue;
    Json entry;
    entry["for"] = name_of(held.owner);
    entry["in"] = name_of(held.place);
    entry["bytes"] = held.bytes;
    entry["peak_bytes"] = held.peak;
    json["held"].push_back(std::move(entry));
  }
  json["peak_by_owner"] = peak_json(run, device);
  json["over_time"] = run.account.json();
  return json;
}

/// What the tuner changed and left so.
Json applied_json(const RunNumbers& run) {
  Json list = Json::Array{};
  if (run.tuning)
    for (const Decision& decision : run.tuning->decisions)
      if (!decision.undone && decision.measured_gain)
        list.push_back(decision.json());
  return list;
}

Json findings_json(const RunNumbers& run) {
  Json list = Json::Array{};
  for (const Finding& finding : findings_of(run.spilled, run.snapshot.parts)) {
    Json entry;
    entry["what"] = finding.what;
    entry["because"] = finding.because;
    entry["next"] = finding.next;
    list.push_back(std::move(entry));
  }
  return list;
}

/// Tokens per second and the share of the device's peak, where a model has
/// such.
void add_work(const RunNumbers& run, Json& json) {
  if (!run.model.is_null()) json["model"] = run.model;
  const double rate = samples_per_s(run.snapshot.parts);
  if (run.row.tokens > 0) json["tokens_per_s"] = run.row.tokens_per_s(rate);
  if (run.row.utilisation(1) > 0) json["mfu"] = run.row.utilisation(rate);
}

Json checkpoints_json(const RunNumbers::Saved& saved) {
  Json json;
  json["saved"] = saved.times;
  json["waited"] = saved.waited;
  json["copy_s"] = seconds(saved.copying);
  json["write_s"] = seconds(saved.writing);
  json["bytes"] = saved.bytes;
  return json;
}

Json tuner_json(const RunNumbers& run) {
  Json json;
  json["on"] = run.tuning.has_value();
  json["decisions"] = Json::Array{};
  if (!run.tuning) return json;
  for (const Decision& decision : run.tuning->decisions)
    json["decisions"].push_back(decision.json());
  json["rests"] = run.tuning->rests;
  return json;
}

/// The stages of the preparation, of each source that is mixed.
Json prepare_json(const RunNumbers& run, const Dataset* rows) {
  Json all(Json::Array{});
  if (rows == nullptr) return all;
  auto add = [&](const DatasetFacts& facts, const Json& source) {
    if (facts.scan == nullptr) return;
    for (const StageNumbers& stage : facts.scan->stages) {
      Json entry = stage_json(stage, seconds(run.first_step - run.started), 1);
      if (!source.is_null()) entry["source"] = source;
      all.push_back(std::move(entry));
    }
  };
  const DatasetFacts& facts = rows->facts();
  add(facts, {});
  for (std::size_t s = 0; s < facts.parts.size(); ++s)
    add(facts.parts[s].rows->facts(), static_cast<std::int64_t>(s));
  return all;
}

}  // namespace

Json report_json(const RunNumbers& run, const Job& job, const Dataset* rows,
                 const Device& device) {
  const Snapshot& snapshot = run.snapshot;
  Json json;
  json["version"] = kReportVersion;
  json["run"] = run.folder;
  json["au"] = utilisation(snapshot.parts);
  json["parts"] = parts_json(snapshot.parts);
  json["steps"] = run.steps;
  json["samples"] = run.samples;
  json["bad_samples"] = run.bad_samples;
  json["samples_per_s"] = samples_per_s(snapshot.parts);
  add_work(run, json);
  json["first_batch_ms"] =
      run.steps > 0 ? 1e3 * seconds(run.first_step - run.started) : kUnknown;
  json["epochs"] = Json::Array{};
  for (const auto& [number, epoch] : run.epochs)
    json["epochs"].push_back(epoch_json(run, number));
  json["metrics"] = metrics_json(run);
  json["best"] = run.best ? best_json(*run.best) : Json();
  json["test"] = run.test;
  if (rows != nullptr) {
    add_outcomes(run.details, job, *rows, json);
    json["learning_rate"] = learning_rate_json(
        job, steps_in_all(job, train_order(job, rows->facts())));
  }
  json["timeline"] = run.timeline.json();
  json["worst_steps"] = worst_steps_json(run, rows);
  json["validation_s"] = seconds(run.validation);
  json["checkpoint_s"] = seconds(run.checkpoints);
  const std::optional<OutsideTime> outside = run.outside_of(job);
  json["wall_s"] = outside ? Json(outside->wall_s) : Json();
  json["outside"] = outside ? outside->json() : Json();
  json["checkpoints"] = checkpoints_json(run.saved);
  Verdict verdict = diagnose(run.last_window());
  if (outside) verdict = with_outside(std::move(verdict), *outside);
  json["verdict"] = verdict.json();
  json["verdict"]["applied"] = applied_json(run);
  json["findings"] = findings_json(run);
  json["tuner"] = tuner_json(run);
  json["plan"] = rows == nullptr ? Json() : rows->plan().json();
  if (rows != nullptr) json["memory"] = memory_json(rows->plan(), run, device);
  json["oom"] = json_of(run.oom);
  json["dataset"] = rows == nullptr ? Json() : rows_json(*rows);
  json["stages"] = stages_json(snapshot);
  json["prepare"] = prepare_json(run, rows);
  json["machine"] = machine_of(device);
  if (snapshot.use.peak_bytes)
    json["machine"]["peak_bytes"] = *snapshot.use.peak_bytes;
  json["settings"] = resolved_settings(job, device);
  return json;
}

Json report_of(Session& session, bool wait) {
  const RunNumbers numbers = session.numbers(wait);
  return report_json(numbers, session.job(), session.opened().get(),
                     session.device());
}

std::string summary_of(const Json& report) {
  if (has_folds(report)) return folds_text(report);
  char text[400];
  auto number = [&](std::string_view key) {
    return number_in(report, {key}).value_or(0);
  };
  const Json& verdict = *report.find("verdict");
  const Json* au = report.find("au");
  const std::string utilisation =
      au->is_number() ? shown_percent(au->number(), 1) : "n/a";
  std::string tokens;
  if (report.find("tokens_per_s") != nullptr) {
    std::snprintf(text, sizeof(text), ", %.0f tokens/s, MFU %.1f %%",
                  number("tokens_per_s"), 100 * number("mfu"));
    tokens = text;
  }
  std::snprintf(text, sizeof(text),
                "%.0f steps, %.0f samples/s%s, first batch after %.0f ms, "
                "accelerator utilisation %s\n%s: %s\nreport: %s/report.json "
                "and report.html\n",
                number("steps"), number("samples_per_s"), tokens.c_str(),
                number("first_batch_ms"), utilisation.c_str(),
                verdict.find("limit")->string().c_str(),
                verdict.find("cause")->string().c_str(),
                report.find("run")->string().c_str());
  return text;
}

}  // namespace penstock
