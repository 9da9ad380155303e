#include "penstock/job/job.h"
#include "penstock/job/sections.h"

namespace penstock {

// Made of the schemas of the sections, in draft 2020-12.
std::string job_schema() {
  std::vector<SettingSchema> train = training_settings().schemas();
  for (SettingSchema& setting : learning_settings().schemas())
    train.push_back(std::move(setting));
  Json more;
  more["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  more["title"] = "Penstock job";
  Json schema = object_schema(
      {{.key = "source", .rule = source_schema(), .required = true},
       {.key = "fields", .rule = fields_schema(), .required = true},
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
