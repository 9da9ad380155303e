#include "penstock/job/schema.h"

#include "penstock/device/device.h"
#include "penstock/job/mixed_sources.h"
#include "penstock/job/model.h"
#include "penstock/job/sections.h"

namespace penstock {
namespace {

/// A rule that an object with this key fits.
Json has(const char* key) {
  Json rule;
  rule["required"].push_back(key);
  return rule;
}

/// Fields are the job's, or those of each source.
Json::Array has_fields() {
  Json own = has("sources");
  own["properties"]["sources"]["items"] = has("fields");
  return {has("fields"), std::move(own)};
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
  Json schema =
      object_schema({{.key = "source", .rule = source_schema()},
                     {.key = "sources", .rule = mixed_sources_schema()},
                     {.key = "fields", .rule = fields_schema()},
                     {.key = "split", .rule = split_settings().schema()},
                     {.key = "loader", .rule = loading_settings().schema()},
                     {.key = "device", .rule = device_schema()},
                     {.key = "model", .rule = model_schema()},
                     {.key = "train", .rule = object_schema(train)},
                     {.key = "output", .rule = output_settings().schema()}},
                    more);
  return schema.dump(2) + "\n";
}

}  // namespace penstock
