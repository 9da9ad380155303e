#include <cmath>
#include <memory>

#include "penstock/cli/columns_text.h"
#include "penstock/cli/output.h"
#include "penstock/cli/verb.h"
#include "penstock/inspect/inspect.h"
#include "penstock/job/job.h"
#include "penstock/run/run.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

std::string summary_of_table(const Json& json) {
  const Json& rows = *json.find("rows");
  const std::int64_t seen = json.find("seen")->integer();
  const bool exact = std::get<bool>(json.find("rows_exact")->value());
  std::string text = json.find("source")->string() + ": ";
  if (exact)
    text += rows.dump() + (seen == 1 ? " row, " : " rows, ");
  else
    text += (rows.is_null() ? "more than " + std::to_string(seen)
                            : "~" + rows.dump()) +
            " rows, of which the first " + std::to_string(seen) +
            " were examined, ";
  const auto columns = json.find("columns")->array().size();
  text += std::to_string(columns) +
          (columns == 1 ? " column, " : " columns, ") +
          std::to_string(std::llround(json.find("rows_per_s")->number())) +
          " rows/s\n\n";
  text += columns_text(*json.find("columns"), seen) + left_out_text(json);
  if (!json.find("first")->array().empty()) text += "\nthe first rows:\n";
  for (const Json& row : json.find("first")->array())
    text += "  " + row.dump() + "\n";
  return text;
}

void run_peek(const std::string& named, const std::string& column,
              const std::string& sheet, bool json) {
  SheetQuery query{
      .source = Json(named), .is_job = names_job(named), .column = column};
  Json source = query.source;
  if (query.is_job) {
    query.source = read_job(named, {});
    const Json* found = query.source.find("source");
    source = found == nullptr ? Json(named) : *found;
  }
  if (!sheet.empty()) write_contact_sheet(query, sheet);
  const Json seen = peek(source);
  if (json) return print_document(seen);
  print(summary_of_table(seen));
}

}  // namespace

Verb peek_verb() {
  return {.name = "peek",
          .help = "Show the columns of a source and its first rows",
          .example = "penstock peek train.csv",
          .add = [](Options& options, Invocation& invocation) -> RunVerb {
            auto uri = std::make_shared<std::string>();
            auto sheet = std::make_shared<std::string>();
            auto column = std::make_shared<std::string>();
            options.add("source", *uri,
                        source_examples() + "; or a job file, JOB.json",
                        {.required = true});
            options.add("--sheet", *sheet,
                        "Write the pictures of a batch, as training sees them, "
                        "to this .png or .html file");
            options.add("--column", *column,
                        "With --sheet: column of the pictures. Default: image");
            add_json(options, invocation, "One JSON document");
            return [=](Invocation& of) {
              run_peek(*uri, *column, *sheet, of.json);
            };
          }};
}

}  // namespace penstock
