#include "penstock/demo/demo.h"

#include <memory>

#include "penstock/cli/output.h"
#include "penstock/cli/terminal.h"
#include "penstock/cli/verb.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

struct DemoArguments {
  std::int64_t rows = 4030;
  std::uint64_t seed = 1;
  std::string to, json_type = "json";
  bool replace = false;
};

void write_positions(const DemoArguments& arguments, Invocation& invocation) {
  std::string to = arguments.to;
  if (to.find('#') == std::string::npos) to += "#measurements";
  Terminal terminal;
  std::int64_t rows = write_positions_demo(
      {.rows = arguments.rows,
       .seed = arguments.seed,
       .to = parse_source_spec(Json(to), "--to"),
       .json_type = arguments.json_type,
       .replace = arguments.replace,
       .progress = [&](const std::string& line) { terminal.progress(line); },
       .stop = invocation.stop});
  terminal.end();
  invocation.interrupted = rows == 0;
  std::string shown = without_password(arguments.to);
  Json json;
  json["rows"] = rows;
  json["to"] = shown;
  if (invocation.json)
    print_document(json);
  else if (rows > 0)
    print("wrote " + std::to_string(rows) + " rows to " + shown + "\n");
}

RunVerb add_positions(Options& demo, Invocation& invocation) {
  auto arguments = std::make_shared<DemoArguments>();
  Options options = demo.verb(
      "positions",
      "Sets of receivers that heard a transmitter, with its position");
  options.add("--rows", arguments->rows, "Number of rows", {.least = 1});
  options.add("--seed", arguments->seed,
              "Seed: the same seed gives the same rows", {.least = 0});
  options.add("--to", arguments->to, source_examples(), {.required = true});
  options.add("--json-type", arguments->json_type,
              "Type of the JSON column: jsonb, json or text",
              {.one_of = {"jsonb", "json", "text"}});
  options.flag("--replace", arguments->replace,
               "Replace the table if it exists");
  add_json(options, invocation, "Print errors as a JSON document");
  options.footer(
      "Example: penstock demo positions --rows 4030 --to sqlite:d.db");
  return [arguments](Invocation& invoked) {
    write_positions(*arguments, invoked);
  };
}

}  // namespace

Verb demo_verb() {
  return {.name = "demo",
          .help = "Write a demonstration data set",
          .ends_in_order = true,
          .add = add_positions};
}

}  // namespace penstock
