#include <charconv>
#include <climits>
#include <memory>

#include "penstock/cli/output.h"
#include "penstock/cli/verb.h"
#include "penstock/inspect/inspect.h"
#include "penstock/run/run.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

struct BatchArguments {
  std::string job, steps = "0:1", split = "train";
  std::vector<std::string> sets;
  BatchQuery query;
};

/// "A:B", half-open.
void parse_steps(const std::string& text, BatchQuery& query) {
  const char* end = text.data() + text.size();
  auto first = std::from_chars(text.data(), end, query.first_step);
  bool good = first.ec == std::errc() && first.ptr != end && *first.ptr == ':';
  if (good) {
    auto last = std::from_chars(first.ptr + 1, end, query.end_step);
    good = last.ec == std::errc() && last.ptr == end;
  }
  if (good && query.first_step >= 0 && query.end_step >= query.first_step)
    return;
  throw Error(ErrorKind::request,
              {.code = "cli.steps",
               .what = "cannot use the steps '" + text + "'",
               .where = "--steps",
               .why = "expected A:B with 0 <= A <= B",
               .next = "write, for example, --steps 10:12"});
}

void run_batch(BatchArguments& arguments, Invocation& invocation) {
  BatchQuery& query = arguments.query;
  parse_steps(arguments.steps, query);
  check_rank(query.rank, "cli.rank", "--rank, --world");
  query.side = arguments.split == "val"    ? Side::val
               : arguments.split == "test" ? Side::test
                                           : Side::train;
  query.stop = invocation.stop;
  bool whole =
      look_at_batches(load_job(arguments.job, arguments.sets), query,
                      [](const Json& line) { print(line.dump() + "\n"); });
  invocation.interrupted = !whole;
}

RunVerb add_batch(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<BatchArguments>();
  BatchQuery& query = arguments->query;
  options.add("job", arguments->job, "The job file", {.required = true});
  options.add("--epoch", query.epoch, "Epoch, counted from 0", {.least = 0});
  options.add("--steps", arguments->steps,
              "Steps A to B-1 of the epoch, as A:B");
  options.add("--split", arguments->split,
              "Side of the split: train, val or test",
              {.one_of = {"train", "val", "test"}});
  options.add("--rank", query.rank.rank, "Of --world", {.least = INT_MIN});
  options.add("--world", query.rank.world, "Number of ranks",
              {.least = INT_MIN});
  options.add("--out", query.out,
              "Write one .safetensors file per step to this folder");
  add_sets(options, arguments->sets);
  add_json(options, invocation, "Print errors as a JSON document");
  return [arguments](Invocation& invoked) { run_batch(*arguments, invoked); };
}

}  // namespace

Verb batch_verb() {
  return {.name = "batch",
          .help = "Show the samples and tensors of a step",
          .example = "penstock batch job.json --epoch 3 --steps 10:12",
          .ends_in_order = true,
          .add = add_batch};
}

}  // namespace penstock
