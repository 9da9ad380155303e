#include <memory>
#include <optional>
#include <string>

#include "penstock/cli/local_ranks.h"
#include "penstock/cli/output.h"
#include "penstock/cli/prediction_output.h"
#include "penstock/cli/python_program.h"
#include "penstock/cli/terminal.h"
#include "penstock/cli/verb.h"
#include "penstock/run/run.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

struct PredictArguments {
  std::string run, source, out;
  bool measures = false;  ///< they are all that is asked for
  int ranks = 1;
  Generation generation{.max_tokens = 0};
};

/// A URI, or the section of a job, which is an object.
Json source_in(const std::string& text) {
  return text.starts_with('{') ? Json::parse(text, "the source") : Json(text);
}

/// What penstock.predictions does in place of this program.
Json request_of_predictions(const PredictArguments& arguments, bool json) {
  Json request;
  request["run"] = arguments.run;
  request["source"] = source_in(arguments.source);
  request["out"] = arguments.out;
  request["measures"] = arguments.measures;
  request["json"] = json;
  return request;
}

/// A signal ends it, and then no file is written.
void run_predict(const PredictArguments& arguments,
                 Invocation& invocation) try {
  if (names_ranks(invocation.command)) check_no_rank();
  Terminal terminal;
  const TrainedRun run = read_trained_run(arguments.run);
  const Json source = source_in(arguments.source);
  if (!arguments.out.empty()) check_prediction_file(arguments.out, source);
  if (arguments.ranks > 1) {
    invocation.exit_code =
        run_as_ranks(invocation.command, arguments.ranks, invocation.json);
    return;
  }
  end_with_launcher();
  if (run.job.model.kind == "own")
    become_python("penstock.predictions",
                  request_of_predictions(arguments, invocation.json).dump());
  PredictOptions options{.source = source,
                         .measures = arguments.measures,
                         .stop = invocation.stop};
  if (arguments.generation.max_tokens > 0)
    options.generation = arguments.generation;
  if (!arguments.out.empty())
    options.open = [&](const std::vector<NewColumn>& columns) {
      return open_prediction_file(arguments.out, columns);
    };
  else if (!arguments.measures && !invocation.json)
    options.open = predictions_to_output;
  const Predicted predicted = predict(run, options);
  if (predicted.rank != 0) return;  // rank 0 shows what all of them did
  for (const std::string& note : notes_of(predicted)) terminal.note(note);
  if (invocation.json) return print_document(json_of(predicted, arguments.out));
  if (arguments.measures) return print(text_of_measures(predicted));
  terminal.note(summary_of(predicted, arguments.out));
} catch (const Error& error) {
  if (!is_stop(error)) throw;
  invocation.interrupted = true;
}

void add_ranks(Options& options, PredictArguments& arguments) {
  options.add("--ranks", arguments.ranks,
              "Share the rows among so many processes of this machine",
              {.least = 1, .most = 1024});
}

RunVerb add_predict(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<PredictArguments>();
  options.add("run", arguments->run,
              "A run's folder, runs/latest say, or what --output left",
              {.required = true});
  options.add("source", arguments->source, "The rows: " + source_examples(),
              {.required = true});
  options.add("--out", arguments->out,
              "Write the predictions to this file: .csv, .tsv, .jsonl, "
              ".parquet or .arrow; default: CSV on standard output, and on a "
              "terminal the first rows");
  Generation& generation = arguments->generation;
  options.add("--max-tokens", generation.max_tokens,
              "Of a language model: go on with each row's text for so many "
              "tokens at most, in a column 'text'",
              {.least = 1, .most = 1 << 20});
  options.add("--temperature", generation.temperature,
              "0: always the likeliest token; default: 0",
              {.least = 0, .most = 100});
  options.add("--top-p", generation.top_p,
              "Draw from the likeliest tokens that have this share together",
              {.least = 0, .most = 1});
  options.add("--seed", generation.seed, "Of what is drawn", {.least = 0});
  add_ranks(options, *arguments);
  add_json(options, invocation,
           "How many rows were predicted, and their measures, as a document");
  return [arguments](Invocation& invoked) { run_predict(*arguments, invoked); };
}

RunVerb add_evaluate(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<PredictArguments>();
  arguments->measures = true;
  options.add("run", arguments->run,
              "A run's folder, runs/latest say, or what --output left",
              {.required = true});
  options.add("source", arguments->source,
              "The rows, with the target: " + source_examples(),
              {.required = true});
  add_ranks(options, *arguments);
  add_json(options, invocation, "The measures as a document");
  return [arguments](Invocation& invoked) { run_predict(*arguments, invoked); };
}

}  // namespace

Verb predict_verb() {
  return {.name = "predict",
          .help = "Predict rows with the model of a run",
          .example = "penstock predict runs/latest new.csv --out answers.csv",
          .ends_in_order = true,
          .add = add_predict};
}

Verb evaluate_verb() {
  return {.name = "evaluate",
          .help = "Measure the model of a run on other rows",
          .example = "penstock evaluate runs/latest test.csv",
          .ends_in_order = true,
          .add = add_evaluate};
}

}  // namespace penstock
