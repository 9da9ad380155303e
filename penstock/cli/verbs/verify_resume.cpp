#include <cstdio>
#include <memory>

#include "penstock/cli/output.h"
#include "penstock/cli/terminal.h"
#include "penstock/cli/verb.h"
#include "penstock/inspect/inspect.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

struct VerifyResumeArguments {
  std::string job;
  std::vector<std::string> sets;
  ResumeCheck check;
};

std::string shown_ms(const Json& times) {
  if (times.find("median")->is_null()) return "n/a";
  auto shown = [&](const char* which) {
    const double ms = times.find(which)->number();
    char text[40];
    std::snprintf(text, sizeof(text), "%.*f ms", ms < 1 ? 1 : 0, ms);
    return std::string(text);
  };
  return shown("median") + " (at most " + shown("max") + ")";
}

std::string summary_of_walk(const Json& json) {
  auto count = [&](const char* key) { return json.find(key)->integer(); };
  auto number = [&](const char* key) { return std::to_string(count(key)); };
  std::string text =
      number("steps") + " steps, restarted in place at " + number("points") +
      " of them, and " + number("restarts") + " times in " + number("chains") +
      " chains on " +
      (count("most_ranks") > 1 ? "1 to " + number("most_ranks") + " ranks\n"
                               : "1 rank\n");
  const Json& why = *json.find("why_one_rank");
  if (!why.is_null())
    text +=
        "the number of ranks was not changed, since batches depend on it: " +
        why.string() + "\n";
  if (count("divergences") > 0)
    text += number("divergences") + " batches differ, the first:\n";
  else if (count("points") + count("restarts") == 0)
    text += "nothing was restarted: take more steps, or set --points\n";
  else
    text += "all batches had the same samples and bytes\n";
  for (const Json& found : json.find("first_divergences")->array())
    text += "  " + found.dump() + "\n";
  return text + "state: " + number("state_bytes") +
         " bytes; first batch after a restart: in place " +
         shown_ms(*json.find("in_place_ms")) + ", reopened " +
         shown_ms(*json.find("resume_ms")) + "\n";
}

void run_verify(VerifyResumeArguments& arguments, Invocation& invocation) try {
  Terminal terminal;
  ResumeCheck& check = arguments.check;
  check.stop = invocation.stop;
  check.progress = [&](const std::string& line) { terminal.progress(line); };
  Json json = verify_resume(load_job(arguments.job, arguments.sets), check);
  terminal.end();
  if (json.find("divergences")->integer() > 0)
    invocation.exit_code = exit_code_of(ErrorKind::internal);
  if (invocation.json) return print_document(json);
  print(summary_of_walk(json));
} catch (const Error& error) {
  if (!is_stop(error)) throw;
  invocation.interrupted = true;
}

RunVerb add_verify(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<VerifyResumeArguments>();
  ResumeCheck& check = arguments->check;
  options.add("job", arguments->job, "The job file", {.required = true});
  options.add("--steps", check.steps,
              "Number of steps to check. 0: two epochs, or the whole job",
              {.least = 0});
  options.add("--points", check.points,
              "Number of restarts in place. -1: at every step", {.least = -1});
  options.add("--chains", check.chains,
              "Number of runs that are restarted several times", {.least = 0});
  options.add("--ranks", check.most_ranks,
              "Greatest number of ranks between two restarts",
              {.least = 1, .most = 64});
  options.add("--seed", check.seed,
              "Seed that chooses restarts, ranks and workers", {.least = 0});
  add_sets(options, arguments->sets);
  add_json(options, invocation, "One JSON document");
  return [arguments](Invocation& invoked) { run_verify(*arguments, invoked); };
}

}  // namespace

Verb verify_resume_verb() {
  return {.name = "verify-resume",
          .help = "Check that restarts change no batch of a job",
          .example = "penstock verify-resume job.json --points -1",
          .ends_in_order = true,
          .add = add_verify};
}

}  // namespace penstock
