#include "penstock/inspect/class_folder.h"

#include "penstock/inspect/job_text.h"

namespace penstock {

ClassFolder class_folder(const NewJob& job, const char* things) {
  const SourceSpec& spec = job.source;
  const Schema schema = read_schema(spec);
  const ColumnInfo* classes = schema.find("class");
  const std::string target = job.target.empty() ? "class" : job.target;
  if (target != "class")
    refuse_target(target,
                  std::string("of ") + things +
                      " their class is "
                      "predicted",
                  "write --target class");
  if (classes == nullptr || classes->values.size() < 2)
    refuse_target(target,
                  classes == nullptr || classes->values.empty()
                      ? "'" + spec.path + "' has no classes"
                      : std::string("all ") + things + " have the class '" +
                            classes->values[0] + "'",
                  "give it a folder for each class, or \"labels\"");
  const auto source =
      open_source(spec, {{.column = "class", .as = ReadAs::value}});
  return {.rows = source->count().rows.value_or(0),
          .classes = std::ssize(classes->values)};
}

std::string class_field(const ClassFolder& folder) {
  return comment("The target: " + shown_count(folder.classes) + " classes.",
                 "    ") +
         "    \"class\": {\"category\": {\"column\": \"class\", \"unknown\": "
         "\"error\"}}\n  },\n";
}

std::string class_batches(const ClassFolder& folder, const char* things) {
  return comment(std::string("Which ") + things +
                     " are held out follows from their paths.",
                 "  ") +
         "  \"split\": {\"train\": 0.8, \"val\": 0.2},\n"
         "  \"loader\": {\"batch_size\": " +
         std::to_string(batch_of(folder.rows, 32)) + "},\n";
}

}  // namespace penstock
