#include <memory>

#include "penstock/cli/output.h"
#include "penstock/cli/report_text.h"
#include "penstock/cli/verb.h"

namespace penstock {
namespace {

struct ExplainArguments {
  std::string run, other, html;
};

Json document_of(const FoundRun& run) {
  Json json;
  json["notes"] = Json::Array{};
  for (const std::string& note : run.notes) json["notes"].push_back(note);
  json["report"] = run.report;
  return json;
}

void compare(const FoundRun& first, const FoundRun& second,
             const Invocation& invocation) {
  for (const FoundRun* run : {&first, &second})
    if (has_folds(run->report))
      throw Error(
          ErrorKind::request,
          {.code = "explain.folds",
           .what = "cannot compare the runs",
           .where = text_in(run->report, {"run"}),
           .why = "the folder is a run of train.folds, which has a run for "
                  "each fold",
           .next = "name one of them: " + text_in(run->report, {"run"}) +
                   "/folds/0"});
  const Json comparison = compare_runs(first.report, second.report);
  if (invocation.json) {
    Json json;
    json["notes"] = Json::Array{};
    for (const FoundRun* run : {&first, &second})
      for (const std::string& note : run->notes)
        json["notes"].push_back(text_in(run->report, {"run"}) + ": " + note);
    json["comparison"] = comparison;
    return print_document(json);
  }
  print(comparison_text(comparison));
  for (const FoundRun* run : {&first, &second})
    for (const std::string& note : run->notes)
      print("note: " + text_in(run->report, {"run"}) + ": " + note + "\n");
}

void run_explain(const ExplainArguments& arguments, Invocation& invocation) {
  const FoundRun run = find_run(arguments.run);
  if (!arguments.other.empty()) {
    if (!arguments.html.empty())
      throw Error(ErrorKind::request,
                  {.code = "cli.arguments",
                   .what = "cannot write the page",
                   .where = "--html",
                   .why = "two runs are named, and a page shows one",
                   .next = "name one run"});
    return compare(run, find_run(arguments.other), invocation);
  }
  if (!arguments.html.empty())
    real_files().write_atomic(arguments.html, report_html(run.report));
  if (invocation.json) return print_document(document_of(run));
  print(run_text(run));
  if (!arguments.html.empty()) print("\nwrote " + arguments.html + "\n");
}

RunVerb add_explain(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<ExplainArguments>();
  options.add("run", arguments->run,
              "A run folder, runs/latest, or a report.json",
              {.required = true});
  options.add("other", arguments->other, "A second run to compare with");
  options.add("--html", arguments->html, "Write the run's page to this file");
  add_json(options, invocation, "One JSON document");
  return [arguments](Invocation& invoked) { run_explain(*arguments, invoked); };
}

}  // namespace

Verb explain_verb() {
  return {.name = "explain",
          .help = "Show where a run's time went and what to change",
          .example = "penstock explain runs/latest",
          .add = add_explain};
}

}  // namespace penstock
