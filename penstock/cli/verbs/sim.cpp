#include <cmath>
#include <cstdio>
#include <memory>

#include "penstock/advisor/advisor.h"
#include "penstock/base/printable.h"
#include "penstock/base/shown.h"
#include "penstock/base/table_text.h"
#include "penstock/base/user_file.h"
#include "penstock/cli/output.h"
#include "penstock/cli/verb.h"
#include "penstock/report/report.h"

namespace penstock {
namespace {

std::string percent(const Json* share) {
  return share == nullptr || share->is_null()
             ? "n/a"
             : shown_percent(share->number(), 0);
}

std::string per_second(const Json* rate) {
  if (rate == nullptr || rate->is_null()) return "n/a";
  char text[40];
  std::snprintf(text, sizeof(text), "%.1f/s", rate->number());
  return text;
}

/// What the tuner changed, line by line.
std::string summary_of_tuned(const Json& tuned) {
  std::vector<std::vector<std::string>> rows = {
      {"window", "set", "from", "to", "predicted", "measured", "because"}};
  for (const Json& change : tuned.find("decisions")->array()) {
    rows.push_back({change.find("window")->dump(),
                    printable(change.find("knob")->string()),
                    change.find("from")->dump(), change.find("to")->dump(),
                    percent(change.find("predicted_gain")),
                    percent(change.find("measured_gain")),
                    printable(change.find("reason")->string())});
    if (const Json& also = *change.find("also"); !also.is_null())
      rows.push_back({"", printable(also.find("knob")->string()),
                      also.find("from")->dump(), also.find("to")->dump(), "",
                      "", "with that"});
  }
  return "\ntuned: " + per_second(tuned.find("rate")) + " batches\n" +
         table_text(rows) + printable(tuned.find("rests")->string()) + "\n";
}

std::string summary_of_pipeline(const Json& json) {
  std::string text = "AU " + percent(json.find("au")) + ", " +
                     per_second(json.find("rate")) + " batches\n";
  std::vector<std::vector<std::string>> rows = {
      {"stage", "workers", "rate", "busy", "waits for input", "for room"}};
  for (const Json& stage : json.find("stages")->array())
    rows.push_back({printable(stage.find("name")->string()),
                    stage.find("workers")->dump(),
                    per_second(stage.find("rate")), percent(stage.find("busy")),
                    percent(stage.find("blocked_get")),
                    percent(stage.find("blocked_put"))});
  text += table_text(rows);
  const Json& verdict = *json.find("verdict");
  text += "\nlimit: " + verdict.find("limit")->string();
  if (const Json& stage = *verdict.find("stage"); !stage.is_null())
    text += ", stage '" + printable(stage.string()) + "'";
  text += "\n" + printable(verdict.find("cause")->string()) + "\n";
  for (const Json& action : verdict.find("actions")->array())
    text += "set " + printable(action.find("knob")->string()) + " from " +
            action.find("from")->dump() + " to " + action.find("to")->dump() +
            ": " + percent(action.find("predicted_gain")) + " faster (" +
            action.find("cost")->string() + ")\n";
  if (const Json& none = *verdict.find("no_action"); !none.is_null())
    text += none.string() + "\n";
  if (const Json* tuned = json.find("tuned")) text += summary_of_tuned(*tuned);
  return text;
}

/// Windows that the tuner is given.
constexpr std::int64_t kWindows = 60;

struct SimArguments {
  std::vector<std::string> files;
  bool tune = false;
};

Json result_of(const Json& document, const std::string& origin, bool tunes) {
  const Pipeline pipeline = parse_pipeline(document, origin);
  Json result = window_json(simulate(pipeline));
  if (!tunes) return result;
  const TunedPipeline tuned = tune(pipeline, kWindows);
  result["tuned"] = tuned.json();
  result["tuned"]["rate"] = rate_of(simulate(tuned.pipeline));
  return result;
}

[[noreturn]] void nothing_to_simulate(const char* why) {
  throw Error(ErrorKind::request, {.code = "cli.arguments",
                                   .what = "there is nothing to simulate",
                                   .where = "the command line",
                                   .why = why,
                                   .next = "penstock sim pipeline.json"});
}

void run_sim(const SimArguments& arguments, Invocation& invocation) {
  const std::vector<std::string>& files = arguments.files;
  std::vector<Json> results;
  bool list = files.size() > 1;
  if (files.empty()) nothing_to_simulate("the command names no file");
  for (const std::string& file : files) {
    const Json document =
        Json::parse(read_user_file(file, "cannot read the pipeline"), file);
    if (!document.is_array()) {
      results.push_back(result_of(document, file, arguments.tune));
      continue;
    }
    list = true;
    for (std::size_t i = 0; i < document.array().size(); ++i)
      results.push_back(result_of(document.array()[i],
                                  file + "[" + std::to_string(i) + "]",
                                  arguments.tune));
  }
  if (results.empty()) nothing_to_simulate("the list is empty");
  if (invocation.json)
    return print_document(list ? Json(std::move(results)) : results.front());
  for (std::size_t i = 0; i < results.size(); ++i)
    print((i > 0 ? "\n" : "") + summary_of_pipeline(results[i]));
}

}  // namespace

Verb sim_verb() {
  return {
      .name = "sim",
      .help = "Simulate pipelines in virtual time and report their bottlenecks",
      .example = "penstock sim pipeline.json",
      .add = [](Options& options, Invocation& invocation) -> RunVerb {
        auto arguments = std::make_shared<SimArguments>();
        options.add(
            "file", arguments->files,
            "Files, each with a pipeline or a list of pipelines as JSON");
        options.flag(
            "--tune", arguments->tune,
            "Set workers and queues as the tuner would, within \"cpus\"");
        add_json(options, invocation,
                 "Print one JSON document, or a list of them");
        return [arguments](Invocation& of) { run_sim(*arguments, of); };
      }};
}

}  // namespace penstock
