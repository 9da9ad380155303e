#include <memory>

#include "penstock/cli/output.h"
#include "penstock/cli/report_text.h"
#include "penstock/cli/terminal.h"
#include "penstock/cli/verb.h"
#include "penstock/demo/demo.h"

namespace penstock {
namespace {

// The most that a job may say.
constexpr double kLongestStepMs = 3.6e6, kLongestRoundTripMs = 60'000;

/// Of the run that trained the model or, without one, of the first with
/// Penstock.
std::string explanation_of(const Json& result) {
  const Json::Array& runs = result.find("runs")->array();
  const Json* report = runs.size() > 1 ? runs[1].find("report") : nullptr;
  if (const Json& model = *result.find("model"); model.is_object())
    report = model.find("report");
  if (report == nullptr) return "";
  return "\n" + run_text({.report = *report, .notes = {}});
}

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
  print(explanation_of(result));
  print("\nreports: " + options.output + "/*/report.html (" +
        std::to_string(runs) + " runs)\n");
}

RunVerb add_quickstart(Options& options, Invocation& invocation) {
  auto chosen = std::make_shared<QuickstartOptions>();
  options.add("--job", chosen->job, "The job file");
  options.add("--rows", chosen->rows, "Number of samples to write",
              {.least = 1});
  options.add("--step-ms", chosen->step_ms,
              "Duration of the simulated step, in milliseconds",
              {.most = kLongestStepMs});
  options.add("--round-trip-ms", chosen->round_trip_ms,
              "Simulated latency per statement, in milliseconds",
              {.most = kLongestRoundTripMs});
  options.add("--epochs", chosen->epochs, "Steps of each run", {.least = 1});
  add_json(options, invocation, "One JSON document");
  return [chosen](Invocation& invoked) { run_quickstart(*chosen, invoked); };
}

}  // namespace

Verb quickstart_verb() {
  return {
      .name = "quickstart",
      .help = "Compare one query per sample with Penstock, and train a model",
      .ends_in_order = true,
      .add = add_quickstart};
}

}  // namespace penstock
