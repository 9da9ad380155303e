#include <algorithm>
#include <cstdio>
#include <memory>

#include "penstock/base/json_path.h"
#include "penstock/base/printable.h"
#include "penstock/base/shown.h"
#include "penstock/cli/columns_text.h"
#include "penstock/cli/output.h"
#include "penstock/cli/terminal.h"
#include "penstock/cli/verb.h"
#include "penstock/inspect/inspect.h"
#include "penstock/run/run.h"
#include "penstock/session/session.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

struct CheckArguments {
  std::string what;
  std::vector<std::string> sets;
  int workers = 0;
};

constexpr std::int64_t kShown = 20;

/// What a field of these columns must decide: rows that a loader without
/// `fields` passes on, and that one with `fields` refuses.
std::string undecided_text(const Json& columns) {
  std::vector<std::string> nulls, infinities;
  for (const Json& column : columns.array()) {
    const std::string& name = column.find("name")->string();
    const Json* least = column.find("min");
    const bool number = least != nullptr && least->is_number();
    if (number && column.find("nulls")->integer() > 0) nulls.push_back(name);
    if (column.find("infinite") != nullptr) infinities.push_back(name);
  }
  std::string text;
  if (!nulls.empty())
    text += "columns of numbers with NULL or NaN: " +
            printable(quoted_list(nulls)) +
            "; a field needs \"missing\" to accept these rows\n";
  if (!infinities.empty())
    text +=
        "columns with infinite values: " + printable(quoted_list(infinities)) +
        "; a field with \"missing\": \"nan\" passes them on, any other "
        "rejects these rows\n";
  return text;
}

std::string summary_of_check(const Json& json) {
  const std::int64_t rows = json.find("rows")->integer();
  const std::int64_t bad = json.find("bad_rows")->integer();
  char time[32];
  std::snprintf(time, sizeof(time), "%.1f s", json.find("seconds")->number());
  std::string text = json.find("source")->string() + ": " +
                     counted(rows, "row") + " read in " + time + "\n";
  if (const Json* sources = json.find("sources"))
    for (const Json& source : sources->array())
      text += "  " + source.find("source")->string() + ": " +
              counted(source.find("rows")->integer(), "row") + ", " +
              source.find("bad_rows")->dump() + " unusable\n";
  if (const Json* columns = json.find("columns"))
    text += "\n" + columns_text(*columns, rows) + left_out_text(json) + "\n";
  if (const Json* train = json.find("train"))
    text += "train " + train->dump() + ", val " + json.find("val")->dump() +
            (*json.find("test") == Json(0)
                 ? ""
                 : ", test " + json.find("test")->dump()) +
            ", too short " + json.find("too_short")->dump() + "\n";
  const std::string no_batch = text_in(json, {"no_batch"});
  if (const Json* twice = json.find("duplicate_keys"))
    text += twice->dump() +
            " keys belong to more than one row: name a column with unique "
            "values as source.key\n";
  else if (bad == 0 && no_batch.empty())
    text += rows == 0 ? "the source has no rows\n" : "all rows can be used\n";
  if (!no_batch.empty())
    text += (bad == 0 ? "each row can be read, but no batch" : "no batch") +
            std::string(" can be made of the train rows: ") + no_batch + "\n";
  if (const Json* columns = json.find("columns"))
    text += undecided_text(*columns);
  if (bad == 0) return text;
  text += counted(bad, "row") + " cannot be used:\n";
  std::int64_t shown = 0;
  for (const Json& row : json.find("bad")->array()) {
    if (++shown > kShown) break;
    const Json* source = row.find("source");
    text += "  " +
            (source == nullptr ? "" : "sources[" + source->dump() + "], ") +
            "row " + printable(row.find("row")->string()) + ", column '" +
            printable(row.find("column")->string() +
                      "': " + row.find("why")->string()) +
            "\n";
  }
  if (bad > kShown)
    text += "  ... (--json lists up to " +
            std::to_string(ParseNotes::kMostBad) + ")\n";
  return text +
         "correct these rows, or leave them out with 'source.where' or "
         "\"source.on_bad\": \"skip\"; for damaged files set "
         "\"loader.on_bad\"\n";
}

Json checked(const CheckArguments& arguments, StopFlag stop) {
  if (names_job(arguments.what)) {
    Job job = load_job(arguments.what, arguments.sets);
    if (arguments.workers > 0) job.loading.workers = arguments.workers;
    return check_job(job, stop);
  }
  if (!arguments.sets.empty())
    throw Error(ErrorKind::request,
                {.code = "cli.arguments",
                 .what = "cannot use --set",
                 .where = "--set " + arguments.sets.front(),
                 .why = "it sets a key of a job, and '" + arguments.what +
                        "' is a source",
                 .next = "name a job file, NAME.json, or leave --set out"});
  const int workers = arguments.workers > 0
                          ? arguments.workers
                          : std::max(1, static_cast<int>(read_cpu_limit()));
  return check_source(parse_source_spec(Json(arguments.what), "source"),
                      workers, stop);
}

void run_check(const CheckArguments& arguments, Invocation& invocation) try {
  Terminal terminal;
  terminal.note("reading all rows of " + without_password(arguments.what));
  const Json json = checked(arguments, {invocation.stop});
  terminal.end();
  if (json.find("bad_rows")->integer() > 0 ||
      json.find("duplicate_keys") != nullptr)
    invocation.exit_code = exit_code_of(ErrorKind::transform);
  else if (!text_in(json, {"no_batch"}).empty())
    invocation.exit_code = exit_code_of(ErrorKind::request);
  if (invocation.json) return print_document(json);
  print(summary_of_check(json));
} catch (const Error& error) {
  if (!is_stop(error)) throw;
  invocation.interrupted = true;
}

}  // namespace

Verb check_verb() {
  return {.name = "check",
          .help = "Read all rows of a job or a source and list the bad ones",
          .example = "penstock check job.json",
          .ends_in_order = true,
          .add = [](Options& options, Invocation& invocation) -> RunVerb {
            auto arguments = std::make_shared<CheckArguments>();
            options.add(
                "what", arguments->what,
                "A job file, NAME.json, or a source: " + source_examples(),
                {.required = true});
            add_sets(options, arguments->sets);
            options.add("--workers", arguments->workers,
                        "Threads that read. Default: the number of processors",
                        {.least = 1, .most = 1024});
            add_json(options, invocation, "One JSON document");
            return [arguments](Invocation& of) { run_check(*arguments, of); };
          }};
}

}  // namespace penstock
