#include "penstock/demo/quickstart.h"

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "penstock/demo/centroid.h"
#include "penstock/demo/positions.h"
#include "penstock/run/run.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

/// One of the four runs of the comparison.
struct Variant {
  const char* name;
  bool per_sample;
  double round_trip_ms;
};

Json document_of(const QuickstartOptions& options) {
  Json document = Json::parse(real_files().read(options.job), options.job);
  document["source"]["path"] = options.database;
  document["output"]["dir"] = options.output;
  return document;
}

Json run_variant(const QuickstartOptions& options, const Variant& variant) {
  Json document = document_of(options);
  document["source"]["round_trip_ms"] = variant.round_trip_ms;
  Json device;
  device["kind"] = "sim";
  device["step_ms"] = options.step_ms;
  document["device"] = device;
  document["model"] = "none";
  if (variant.per_sample) document["loader"]["read"] = "per_sample";
  document["train"] = Json(Json::Object{});
  document["train"]["epochs"] = options.epochs;
  TrainResult result =
      train(parse_job(document),
            {.stop = options.stop, .listener = {.progress = options.progress}});
  return result.report;
}

/// Trains the job's model; the document of "model".
Json train_model(const QuickstartOptions& options, const Job& job) {
  Job on_host = job;
  on_host.device = {.kind = "cpu"};
  CentroidError centroid = weighted_centroid(*open_loader(on_host), job);
  TrainResult result = train(
      job, {.stop = options.stop, .listener = {.progress = options.progress}});
  Json json;
  json["report"] = result.report;
  json["centroid_n"] = centroid.n;
  json["centroid_median_km"] = centroid.val_median_km;
  json["held_out_rows"] = centroid.val_rows;
  const Json::Array& epochs = result.report.find("epochs")->array();
  const Json* km =
      epochs.empty() ? nullptr : epochs.back().find("val_median_km");
  json["median_km"] = km == nullptr ? Json() : *km;
  return json;
}

double number(const Json& json, const char* key) {
  const Json* found = json.find(key);
  return found != nullptr && found->is_number() ? found->number() : NAN;
}

/// "12.5 %", or "n/a" for what was not measured.
std::string shown(double value, int digits, const char* unit) {
  if (!std::isfinite(value)) return "n/a";
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f%s", digits, value, unit);
  return text;
}

std::string model_text(const Json& result) {
  if (const Json* why = result.find("why_no_model"))
    return "\nthe network was not trained: " + why->string() + "\n";
  const Json& model = *result.find("model");
  if (model.is_null()) return "";
  const Json& report = *model.find("report");
  const Json::Array& epochs = report.find("epochs")->array();
  if (epochs.empty() || !model.find("median_km")->is_number()) return "";
  double took = 0;
  for (const Json& epoch : epochs) took += number(epoch, "seconds");
  double km = number(model, "median_km");
  double centroid = number(model, "centroid_median_km");
  char text[400];
  std::snprintf(
      text, sizeof(text),
      "\nthe network, trained on %s: %zu epochs in %s, AU %s, %s samples/s\n"
      "median error on %lld held-out rows: %s; weighted centroid (n = %s): "
      "%s; ratio %s\n",
      report.find("settings")->find("device_used")->string().c_str(),
      epochs.size(), shown(took, 1, " s").c_str(),
      shown(100 * number(report, "au"), 1, " %").c_str(),
      shown(number(report, "samples_per_s"), 0, "").c_str(),
      static_cast<long long>(model.find("held_out_rows")->integer()),
      shown(km, 2, " km").c_str(),
      shown(number(model, "centroid_n"), 0, "").c_str(),
      shown(centroid, 2, " km").c_str(), shown(km / centroid, 2, "").c_str());
  return text;
}

std::string row_text(const Json& entry) {
  const Json& report = *entry.find("report");
  const Json::Array& epochs = report.find("epochs")->array();
  double seconds_per_epoch =
      epochs.empty() ? NAN : number(epochs.back(), "seconds");
  char text[200];
  std::snprintf(text, sizeof(text), "%-28s %9s  %8s  %9s  %10s  %11s\n",
                entry.find("name")->string().c_str(),
                shown(number(entry, "round_trip_ms"), 1, " ms").c_str(),
                shown(100 * number(report, "au"), 1, " %").c_str(),
                shown(number(report, "samples_per_s"), 0, "").c_str(),
                shown(seconds_per_epoch, 2, " s").c_str(),
                shown(number(report, "first_batch_ms"), 0, " ms").c_str());
  return text;
}

std::string table_of(const Json::Array& runs) {
  std::string table =
      "                             round trip        AU  samples/s  per "
      "epoch  first batch\n";
  for (const Json& run : runs) table += row_text(run);
  table += "\n";
  for (const Json& run : runs) {
    const Json& verdict = *run.find("report")->find("verdict");
    table += run.find("name")->string() + ": " +
             verdict.find("limit")->string() + "-bound; " +
             verdict.find("cause")->string() + "\n";
  }
  return table;
}

/// Adds what was trained, or why nothing was.
void add_model(const QuickstartOptions& options,
               const std::function<void(const std::string&)>& note,
               Json& result) {
  Job job = parse_job(document_of(options));
  try {
    if (job.model.none()) return;
    load_trainer();
  } catch (const Error& error) {
    result["why_no_model"] = error.what();
    note(std::string("no model is trained: ") + error.what());
    return;
  }
  note("training the network: " + std::to_string(job.training.epochs) +
       " epochs");
  // If training fails, the numbers of the runs before it are still returned.
  try {
    result["model"] = train_model(options, job);
  } catch (const Error& error) {
    result["why_no_model"] = error.what();
    result["error"] = *Json::parse(error.json(), "error").find("error");
    note(std::string("training failed: ") + error.what());
    if (options.failed) options.failed(error);
  }
}

}  // namespace

Json quickstart(const QuickstartOptions& options) {
  auto note = [&](const std::string& line) {
    if (options.note) options.note(line);
  };
  std::filesystem::path folder =
      std::filesystem::path(options.database).parent_path();
  if (!folder.empty()) real_files().make_folders(folder);
  note("writing " + std::to_string(options.rows) + " samples to " +
       options.database);
  load_job(options.job,
           {});  // fails for a wrong job before anything is written
  Json result;
  result["runs"] = Json::Array{};
  result["model"] = nullptr;
  result["table"] = "";
  if (write_positions_demo({.rows = options.rows,
                            .seed = 1,
                            .to = {.kind = "sqlite",
                                   .path = options.database,
                                   .table = "measurements"},
                            .json_type = "json",
                            .replace = true,
                            .stop = options.stop}) == 0)
    return result;
  char delay[120];
  std::snprintf(delay, sizeof(delay),
                "simulated latency of the database: %.1f ms per statement, the "
                "same for both",
                options.round_trip_ms);
  note(delay);
  const Variant variants[] = {
      {"a query per sample", true, options.round_trip_ms},
      {"penstock", false, options.round_trip_ms},
      {"a query per sample", true, 0},
      {"penstock", false, 0}};
  for (const Variant& variant : variants) {
    char line[120];
    std::snprintf(line, sizeof(line),
                  "running: %s, %.1f ms per round trip, %.0f ms per step",
                  variant.name, variant.round_trip_ms, options.step_ms);
    note(line);
    Json entry;
    entry["name"] = variant.name;
    entry["round_trip_ms"] = variant.round_trip_ms;
    entry["report"] = run_variant(options, variant);
    result["runs"].push_back(std::move(entry));
    if (options.stop != nullptr && options.stop->load()) break;
  }
  if (options.stop == nullptr || !options.stop->load())
    add_model(options, note, result);
  result["table"] = table_of(result["runs"].array()) + model_text(result);
  return result;
}

}  // namespace penstock
