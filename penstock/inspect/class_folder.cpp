#include "penstock/inspect/class_folder.h"

#include "penstock/base/error.h"
#include "penstock/inspect/first_files.h"
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

std::optional<ClassTable> class_table(const NewJob& job, StopFlag stop) {
  const Schema schema = surveyed_schema(job.source);
  const std::vector<ColumnRequest> requests = surveyed_columns(schema);
  const auto source =
      open_source(job.source, requests, {.stop = stop, .keys = false});
  std::optional<ClassTable> table;
  for (std::size_t at = 0; at < requests.size() && !table; ++at) {
    const std::string& name = requests[at].column;
    if (source->types()[at].kind != ColumnKind::binary ||
        (!job.input.empty() && name != job.input))
      continue;
    if (const auto media = media_in(job.source, requests[at], stop))
      table = {.kind = media->kind, .files = {.column = name}};
  }
  if (!table) return std::nullopt;
  const ColumnInfo* target = schema.find(job.target);
  if (target == nullptr) {
    std::vector<std::string> names;
    for (const ColumnInfo& column : schema.columns)
      names.push_back(column.name);
    refuse_target(job.target, "the source has no such column",
                  did_you_mean(job.target, names));
  }
  const Survey survey =
      survey_columns(job.source, {.columns = {*target}}, stop);
  const ColumnSurvey& classes = survey.columns[0];
  if (!is_class(classes) || classes.many_values || classes.values.size() < 2)
    refuse_target(job.target,
                  "the column holds " +
                      std::string(classes.many_values ? "more than " : "") +
                      std::to_string(classes.values.size()) +
                      " different values in " + std::to_string(survey.rows) +
                      " rows, expected at least two classes that repeat",
                  "name another column with --target");
  table->files.rows = survey.rows;
  table->files.classes = std::ssize(classes.values);
  table->files.target = job.target;
  table->files.all_known = false;
  return table;
}

std::string class_source(const NewJob& job, const ClassFolder& folder,
                         const std::string& one) {
  const bool table = !folder.column.empty();
  return begin_of_job(table ? "the " + counted(folder.rows, "row") + " of " +
                                  quoted(job.source.path) + " hold"
                            : counted(folder.rows, one) + " in " +
                                  quoted(job.source.path),
                      job.name) +
         (table ? "  // Where the rows are.\n"
                : "  // Files in a folder for each class, or with labels.\n") +
         source_line(settings_of(job.source));
}

std::string file_column(const ClassFolder& folder) {
  return folder.column.empty()
             ? ""
             : "      \"column\": " + quoted(folder.column) + ",\n";
}

std::string class_field(const ClassFolder& folder) {
  return comment("The target: " + shown_count(folder.classes) + " classes.",
                 "    ") +
         "    \"class\": {\"category\": {\"column\": " + quoted(folder.target) +
         (folder.all_known ? ", \"unknown\": \"error\"}}" : "}}") + "\n  },\n";
}

std::string class_batches(const ClassFolder& folder, const char* things) {
  return comment(std::string("Which ") + things +
                     " are held out follows from their " +
                     (folder.column.empty() ? "paths." : "keys or places."),
                 "  ") +
         "  \"split\": {\"train\": 0.8, \"val\": 0.2},\n"
         "  \"loader\": {\"batch_size\": " +
         std::to_string(batch_of(folder.rows, 32)) + "},\n";
}

}  // namespace penstock
