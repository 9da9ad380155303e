#include "penstock/demo/demo.h"

#include <memory>

#include "penstock/cli/output.h"
#include "penstock/cli/terminal.h"
#include "penstock/cli/verb.h"
#include "penstock/cli/whole_number.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

struct Arguments {
  std::int64_t rows = 4030;
  std::uint64_t seed = 1;
  std::string to, json_type = "json";
  bool replace = false;
};

void write_positions(const Arguments& arguments, Invocation& invocation) {
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

RunVerb add_positions(CLI::App& demo, Invocation& invocation) {
  auto arguments = std::make_shared<Arguments>();
  demo.require_subcommand(1);
  CLI::App& app = *demo.add_subcommand(
      "positions", "Receivers that heard a transmitter, with its position");
  app.add_option("--rows", arguments->rows, "How many")
      ->check(whole_number<std::int64_t>(1));
  app.add_option("--seed", arguments->seed, "The same seed, the same rows")
      ->check(whole_number<std::uint64_t>(0));
  app.add_option("--to", arguments->to, source_examples())->required();
  app.add_option("--json-type", arguments->json_type, "jsonb, json or text")
      ->check(CLI::IsMember({"jsonb", "json", "text"}));
  app.add_flag("--replace", arguments->replace, "Replace an existing table");
  add_json(app, invocation, "Errors as a document");
  app.footer("Example: penstock demo positions --rows 4030 --to sqlite:d.db");
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
