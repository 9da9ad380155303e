#include <cmath>
#include <memory>

#include "penstock/cli/output.h"
#include "penstock/cli/table.h"
#include "penstock/cli/verb.h"
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
            " were looked at, ";
  const auto columns = json.find("columns")->array().size();
  text += std::to_string(columns) +
          (columns == 1 ? " column, " : " columns, ") +
          std::to_string(std::llround(json.find("rows_per_s")->number())) +
          " rows/s\n\n";
  text += columns_text(*json.find("columns"), seen);
  if (!json.find("first")->array().empty()) text += "\nthe first rows:\n";
  for (const Json& row : json.find("first")->array())
    text += "  " + row.dump() + "\n";
  return text;
}

}  // namespace

Verb peek_verb() {
  return {.name = "peek",
          .help = "Show what the columns of a source hold, and its first rows",
          .example = "penstock peek train.csv",
          .add = [](Options& options, Invocation& invocation) -> RunVerb {
            auto uri = std::make_shared<std::string>();
            auto sheet = std::make_shared<std::string>();
            options.add("source", *uri, source_examples(), {.required = true});
            options.add("--sheet", *sheet,
                        "Write the pictures of a batch, as training gets them, "
                        "to this .png or .html file");
            add_json(options, invocation, "One JSON document");
            return [uri, sheet](Invocation& of) {
              if (!sheet->empty()) write_contact_sheet(*uri, *sheet);
              const Json json = peek(*uri);
              if (of.json) return print_document(json);
              print(summary_of_table(json));
            };
          }};
}

}  // namespace penstock
