#include "penstock/job/schema.h"

#include "penstock/base/setting_schema.h"
#include "penstock/device/device.h"
#include "penstock/job/mixed_sources.h"
#include "penstock/job/sections.h"
#include "penstock/models/models.h"

namespace penstock {
namespace {

/// A rule that an object with this key fits.
Json has(const char* key) {
  Json rule;
  rule["required"].push_back(key);
  return rule;
}

/// What a section is for.
Json described(const char* about) {
  Json rules;
  rules["description"] = about;
  return rules;
}

/// Fields are the job's, or those of each source.
Json::Array has_fields() {
  Json own = has("sources");
  own["properties"]["sources"]["items"] = has("fields");
  return {has("fields"), std::move(own)};
}

/// A source in full, or a URI.
Json source_or_uri() {
  Json rule;
  rule["description"] =
      "Where the rows are: a URI, the name of a file, or a section.";
  rule["anyOf"].push_back(
      settings::rule_of("string", "A URI, or the name of a file"));
  rule["anyOf"].push_back(source_schema());
  return rule;
}

/// Fields in full, or in the short forms of written_out().
Json fields_with_short_forms() {
  Json rule = fields_schema();
  Json columns = settings::rule_of("array", "Columns of numbers");
  columns["minItems"] = 1;
  columns["uniqueItems"] = true;
  columns["items"]["type"] = "string";
  Json full = rule["additionalProperties"], any;
  any["anyOf"].push_back(settings::rule_of(
      "string", "A column: a category if it holds text, else a number"));
  any["anyOf"].push_back(std::move(columns));
  any["anyOf"].push_back(std::move(full));
  rule["additionalProperties"] = std::move(any);
  return rule;
}

Json split_schema() {
  Json share, either;
  share["type"] = "number";
  share["exclusiveMinimum"] = 0;
  share["exclusiveMaximum"] = 1;
  share["description"] =
      "Share of train rows: 0.8 is short for {\"train\": 0.8, \"val\": 0.2}";
  either["description"] =
      "Which rows are for training and which for validation.";
  either["anyOf"] = Json::Array{std::move(share), split_settings().schema()};
  return either;
}

}  // namespace

// Made of the schemas of the sections, in draft 2020-12.
std::string job_schema() {
  std::vector<SettingSchema> train = training_settings().schemas();
  for (SettingSchema& setting : learning_settings().schemas())
    train.push_back(std::move(setting));
  Json more;
  more["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  more["title"] = "Penstock job";
  Json one = has("source"), several = has("sources");
  one["not"] = has("sources");
  several["not"] = has("source");
  more["oneOf"].push_back(std::move(one));
  more["oneOf"].push_back(std::move(several));
  more["anyOf"] = has_fields();
  Json schema = object_schema(
      {{.key = "source", .rule = source_or_uri()},
       {.key = "sources", .rule = mixed_sources_schema()},
       {.key = "fields", .rule = fields_with_short_forms()},
       {.key = "split", .rule = split_schema()},
       {.key = "loader", .rule = loading_settings().schema()},
       {.key = "device", .rule = device_schema()},
       {.key = "model", .rule = model_schema()},
       {.key = "train",
        .rule = object_schema(
            train, described("How long and how the model is trained."))},
       {.key = "output", .rule = output_settings().schema()}},
      more);
  return schema.dump(2) + "\n";
}

}  // namespace penstock
