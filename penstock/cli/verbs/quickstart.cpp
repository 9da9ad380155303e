#include <memory>

#include "penstock/cli/output.h"
#include "penstock/cli/terminal.h"
#include "penstock/cli/verb.h"
#include "penstock/cli/whole_number.h"
#include "penstock/demo/demo.h"

namespace penstock {
namespace {

void run_quickstart(QuickstartOptions& options, Invocation& invocation) {
  Terminal terminal;
  options.stop = invocation.stop;
  options.note = [&](const std::string& line) { terminal.note(line); };
  options.progress = [&](const Progress& p) { terminal.progress(p); };
  options.failed = [&](const Error& error) {
    invocation.exit_code = exit_code_of(error.kind());
  };
  Json result = quickstart(options);
  terminal.end();
  invocation.interrupted = invocation.stop->load();
  if (invocation.json) return print_document(result);
  print("\n" + result.find("table")->string());
  std::size_t runs = result.find("runs")->array().size() +
                     (result.find("model")->is_null() ? 0 : 1);
  print("\nreports: " + options.output + "/*/report.json (" +
        std::to_string(runs) + " runs)\n");
}

RunVerb add_quickstart(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<QuickstartOptions>();
  app.add_option("--job", options->job, "The job file");
  app.add_option("--rows", options->rows, "Samples to write")
      ->check(whole_number<std::int64_t>(1));
  app.add_option("--step-ms", options->step_ms, "Of the simulated step");
  app.add_option("--round-trip-ms", options->round_trip_ms,
                 "Simulated latency per statement");
  app.add_option("--epochs", options->epochs, "Of each run")
      ->check(whole_number<std::int64_t>(1));
  add_json(app, invocation, "One JSON document");
  return [options](Invocation& invoked) { run_quickstart(*options, invoked); };
}

}  // namespace

Verb quickstart_verb() {
  return {.name = "quickstart",
          .help = "Compare a query per sample with Penstock, and train a model",
          .ends_in_order = true,
          .add = add_quickstart};
}

}  // namespace penstock
