#include <cmath>
#include <cstdio>
#include <memory>

#include "penstock/advisor/advisor.h"
#include "penstock/base/user_file.h"
#include "penstock/cli/output.h"
#include "penstock/cli/table.h"
#include "penstock/cli/verb.h"
#include "penstock/run/run.h"

namespace penstock {
namespace {

std::string percent(const Json* share) {
  return share == nullptr || share->is_null()
             ? "n/a"
             : std::to_string(std::lround(100 * share->number())) + " %";
}

std::string per_second(const Json* rate) {
  if (rate == nullptr || rate->is_null()) return "n/a";
  char text[40];
  std::snprintf(text, sizeof(text), "%.1f/s", rate->number());
  return text;
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
  return text;
}

void run_sim(const std::vector<std::string>& files, Invocation& invocation) {
  std::vector<Json> results;
  bool list = files.size() > 1;
  for (const std::string& file : files) {
    const Json document =
        Json::parse(read_user_file(file, "cannot read the pipeline"), file);
    if (!document.is_array()) {
      results.push_back(window_json(simulate(parse_pipeline(document, file))));
      continue;
    }
    list = true;
    for (std::size_t i = 0; i < document.array().size(); ++i)
      results.push_back(window_json(simulate(parse_pipeline(
          document.array()[i], file + "[" + std::to_string(i) + "]"))));
  }
  if (invocation.json)
    return print_document(list ? Json(std::move(results)) : results.front());
  for (std::size_t i = 0; i < results.size(); ++i)
    print((i > 0 ? "\n" : "") + summary_of_pipeline(results[i]));
}

}  // namespace

Verb sim_verb() {
  return {.name = "sim",
          .help = "Run described pipelines in virtual time, say what limits",
          .example = "penstock sim pipeline.json",
          .add = [](Options& options, Invocation& invocation) -> RunVerb {
            auto files = std::make_shared<std::vector<std::string>>();
            options.add("file", *files,
                        "A pipeline as JSON, or a list of them; several files");
            add_json(options, invocation,
                     "One JSON document, or a list of them");
            return [files](Invocation& of) {
              if (files->empty())
                throw Error(ErrorKind::request,
                            {.code = "cli.arguments",
                             .what = "there is nothing to simulate",
                             .where = "the command line",
                             .why = "no file is named",
                             .next = "penstock sim pipeline.json"});
              run_sim(*files, of);
            };
          }};
}

}  // namespace penstock
