#include <cstdio>
#include <memory>

#include "penstock/cli/output.h"
#include "penstock/cli/terminal.h"
#include "penstock/cli/verb.h"
#include "penstock/run/run.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

struct Arguments {
  std::string job, resume;
  std::vector<std::string> sets;
  std::int64_t skip = 0;
  bool plan = false;
};

double number_in(const Json& json, const char* key) {
  const Json* found = json.find(key);
  return found != nullptr && found->is_number() ? found->number() : 0.0;
}

std::string summary_of(const Json& report) {
  char text[400];
  const Json& verdict = *report.find("verdict");
  const Json* au = report.find("au");
  std::string utilisation = "n/a";
  if (au->is_number()) {
    std::snprintf(text, sizeof(text), "%.1f %%", 100 * au->number());
    utilisation = text;
  }
  std::snprintf(text, sizeof(text),
                "%.0f steps, %.0f samples/s, first batch after %.0f ms, "
                "accelerator utilisation %s\n%s: %s\nreport: %s/report.json\n",
                number_in(report, "steps"), number_in(report, "samples_per_s"),
                number_in(report, "first_batch_ms"), utilisation.c_str(),
                verdict.find("limit")->string().c_str(),
                verdict.find("cause")->string().c_str(),
                report.find("run")->string().c_str());
  return text;
}

/// The job of the file, or of the run that is resumed.
Job job_of(const Arguments& arguments) {
  if (arguments.job.empty() == arguments.resume.empty())
    throw Error(
        ErrorKind::request,
        {.code = "cli.arguments",
         .what = "cannot start the training",
         .where = "the command line",
         .why = arguments.job.empty() ? "neither a job nor a run is named"
                                      : "both a job and a run are named",
         .next = "name either a job file or --resume RUN"});
  if (arguments.skip != 0 && (arguments.resume.empty() || arguments.plan))
    throw Error(
        ErrorKind::request,
        {.code = "cli.arguments",
         .what = "cannot skip steps",
         .where = "--skip",
         .why = arguments.plan ? "a plan takes no step" : "no run is resumed",
         .next = arguments.plan ? "leave out --skip or --plan"
                                : "name the run with --resume"});
  if (arguments.resume.empty()) return load_job(arguments.job, arguments.sets);
  Json document = job_of_run(arguments.resume).document;
  for (const std::string& set : arguments.sets) apply_setting(document, set);
  return parse_job(document);
}

void show_plan(const Job& job, Terminal& terminal, Invocation& invocation) try {
  auto note = [&](const std::string& line) { terminal.note(line); };
  DatasetInfo info = plan_rows(job, note, {invocation.stop});
  if (invocation.json) return print_document(plan_json(job, info));
  print(std::to_string(info.on_side[0]) + " train + " +
        std::to_string(info.on_side[1]) +
        " val rows; where they will be stored:\n" + info.plan.text());
  if (std::string line = order_line(train_order(job, info)); !line.empty())
    print(line + "\n");
} catch (const Error& error) {
  if (!is_stop(error)) throw;
  invocation.interrupted = true;
}

void run_train(const Arguments& arguments, Invocation& invocation) {
  Job job = job_of(arguments);
  Terminal terminal;
  if (arguments.plan) return show_plan(job, terminal, invocation);
  TrainListener listener{
      .note = [&](const std::string& line) { terminal.note(line); },
      .progress = [&](const Progress& p) { terminal.progress(p); }};
  TrainResult result = train(job, {.stop = invocation.stop,
                                   .save = invocation.save,
                                   .listener = std::move(listener),
                                   .resume = arguments.resume,
                                   .skip = arguments.skip});
  terminal.end();
  invocation.interrupted = result.interrupted;
  if (invocation.json)
    print_document(result.report);
  else
    print(summary_of(result.report));
}

RunVerb add_train(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<Arguments>();
  options.add("job", arguments->job, "The job file");
  options.add("--resume", arguments->resume,
              "Resume an interrupted run: its folder");
  options.add("--skip", arguments->skip,
              "With --resume: steps of data to leave out; below 0: to take "
              "again",
              {.least = INT64_MIN});
  options.flag("--plan", arguments->plan,
               "Read the rows, show where they would be kept, and end");
  add_sets(options, arguments->sets);
  add_json(options, invocation,
           "The report (with --plan the plan) on standard output");
  return [arguments](Invocation& invoked) { run_train(*arguments, invoked); };
}

}  // namespace

Verb train_verb() {
  return {.name = "train",
          .help = "Run a job",
          .example = "penstock train job.json --set loader.cache=none",
          .ends_in_order = true,
          .add = add_train};
}

}  // namespace penstock
