#include "penstock/run/quickstart.h"

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "penstock/run/demo.h"

namespace penstock {
namespace {

/// One of the four runs of the comparison.
struct Variant {
  const char* name;
  bool per_sample;
  double round_trip_ms;
};

Json run_variant(const QuickstartOptions& options, const Variant& variant) {
  Json document = Json::parse(real_files().read(options.job), options.job);
  document["source"]["path"] = options.database;
  document["source"]["round_trip_ms"] = variant.round_trip_ms;
  Json device;
  device["kind"] = "sim";
  device["step_ms"] = options.step_ms;
  document["device"] = device;
  document["model"] = "none";
  if (variant.per_sample) document["loader"]["read"] = "per_sample";
  document["train"] = Json(Json::Object{});
  document["train"]["epochs"] = options.epochs;
  document["output"]["dir"] = options.output;
  TrainResult result =
      train(parse_job(document),
            {.stop = options.stop, .listener = {.progress = options.progress}});
  return result.report;
}

std::string row_text(const Json& entry) {
  const Json& report = *entry.find("report");
  auto number = [&](const Json& json, const char* key) {
    const Json* found = json.find(key);
    return found != nullptr && found->is_number() ? found->number() : NAN;
  };
  const Json::Array& epochs = report.find("epochs")->array();
  char text[200];
  std::snprintf(text, sizeof(text),
                "%-28s %6.1f ms  %6.1f %%  %9.0f  %8.2f s  %8.0f ms\n",
                entry.find("name")->string().c_str(),
                number(entry, "round_trip_ms"), 100 * number(report, "au"),
                number(report, "samples_per_s"),
                epochs.empty() ? NAN : number(epochs.back(), "seconds"),
                number(report, "first_batch_ms"));
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
  write_positions_demo({.rows = options.rows,
                        .seed = 1,
                        .to = {.kind = "sqlite",
                               .path = options.database,
                               .table = "measurements"},
                        .json_type = "json",
                        .replace = true});
  char delay[120];
  std::snprintf(delay, sizeof(delay),
                "declared delay of the database: %.1f ms per statement, the "
                "same for both ways",
                options.round_trip_ms);
  note(delay);
  const Variant variants[] = {
      {"a query per sample", true, options.round_trip_ms},
      {"penstock", false, options.round_trip_ms},
      {"a query per sample", true, 0},
      {"penstock", false, 0}};
  Json result;
  result["runs"] = Json::Array{};
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
  result["table"] = table_of(result["runs"].array());
  return result;
}

}  // namespace penstock
