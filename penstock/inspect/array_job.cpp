#include "penstock/inspect/array_job.h"

#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/base/shown.h"
#include "penstock/inspect/job_text.h"

namespace penstock {
namespace {

bool is_array_column(const ColumnInfo& column) { return !column.item.empty(); }

[[noreturn]] void refuse_inputs(const std::string& shown, std::string why,
                                std::string next) {
  throw Error(ErrorKind::request,
              {.code = "init.no_inputs",
               .what = "cannot write a job that predicts a column",
               .where = shown,
               .why = std::move(why),
               .next = std::move(next)});
}

/// The one that --input names, or the only one.
const ColumnInfo& input_of(const NewJob& job,
                           const std::vector<ColumnInfo>& arrays,
                           const std::string& shown) {
  if (job.input.empty() && arrays.size() == 1) return arrays[0];
  for (const ColumnInfo& column : arrays)
    if (column.name == job.input) return column;
  if (!job.input.empty())
    refuse_inputs(shown, "there is no array '" + job.input + "'",
                  "name one of its arrays with --input: " +
                      listed(arrays, &ColumnInfo::name));
  refuse_inputs(
      shown,
      "it has several columns of arrays: " + listed(arrays, &ColumnInfo::name),
      "name the one that the model sees with --input");
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (std::int64_t side : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(side);
  return "[" + text + "]";
}

/// Pictures: three dimensions, of which one is of 1 to 4 channels.
bool is_picture(const Shape& shape) {
  return shape.size() == 3 && (shape[2] <= 4 || shape[0] <= 4) &&
         std::min(shape[1], std::max(shape[0], shape[2])) >= 16;
}

std::string model_text(const Shape& shape, const std::string& target) {
  const std::string to = ", \"target\": " + quoted(target);
  if (shape.size() == 1)
    return "  \"model\": {\"kind\": \"tabular\"" + to +
           ",\n            \"width\": 128, \"depth\": 3, \"dropout\": 0.1},\n";
  if (is_picture(shape))
    return "  \"model\": {\"kind\": \"image_classifier\", \"image\": "
           "\"input\"" +
           to + ",\n            \"network\": \"resnet18\"},\n";
  return "  \"model\": {\"kind\": \"spectrogram_classifier\", "
         "\"spectrogram\": \"input\"" +
         to + ",\n            \"width\": 16, \"depth\": 3},\n";
}

/// Of two dimensions: a band and a stretch of each are hidden.
std::string augment_text(const Shape& shape) {
  if (shape.size() != 2 || std::min(shape[0], shape[1]) < 8) return "";
  return ",\n      // Augmentation, of the training rows only: some columns "
         "and "
         "lines are\n      // hidden, others in every epoch. Without it: the "
         "array alone.\n      \"augment\": [{\"spec_augment\": {\n"
         "        \"time_masks\": 1, \"time_width\": " +
         std::to_string(shape[1] / 8) +
         ",\n        \"frequency_masks\": 1, \"frequency_width\": " +
         std::to_string(shape[0] / 8) + "}}]";
}

}  // namespace

bool holds_arrays(const SourceSpec& spec) {
  return std::ranges::any_of(surveyed_schema(spec).columns, is_array_column);
}

std::string array_job_text(const NewJob& job, StopFlag stop) {
  Schema schema = surveyed_schema(job.source);
  std::vector<ColumnInfo> arrays;
  for (const ColumnInfo& column : schema.columns)
    if (is_array_column(column)) arrays.push_back(column);
  const auto named =
      std::ranges::find(schema.columns, job.target, &ColumnInfo::name);
  if (named == schema.columns.end()) {
    std::vector<std::string> names;
    for (const ColumnInfo& column : schema.columns)
      names.push_back(column.name);
    refuse_target(job.target, job.source.path + " has no such column",
                  did_you_mean(job.target, names));
  }
  if (is_array_column(*named))
    refuse_target(job.target,
                  "its rows are arrays of shape " + shape_text(named->item) +
                      ", expected one value",
                  "name a column of single values with --target");
  schema.columns = {*named};
  const Survey survey = survey_columns(job.source, schema, stop);
  const ColumnSurvey& target = survey.columns[0];
  const ColumnInfo& input = input_of(job, arrays, survey.shown);
  const bool classes = is_class(target);
  if (!classes && input.item.size() > 1)
    refuse_target(job.target,
                  "it holds numbers, and the models of arrays of shape " +
                      shape_text(input.item) + " predict classes",
                  "train a module of your own: docs/how-to/own_model.md");
  if (classes ? std::ssize(target.values) < 2 : target.one_number())
    refuse_target(job.target, "all its values are the same",
                  "name another column with --target");
  return begin_of_job("the " + counted(survey.rows, "row") + " of " +
                          quoted(survey.shown) + " hold",
                      job.name) +
         source_line(settings_of(job.source)) + "  \"fields\": {\n" +
         comment("What the model sees: arrays of shape " +
                     shape_text(input.item) + ".",
                 "    ") +
         "    \"input\": {\"array\": {\n      \"column\": " +
         quoted(input.name) + ", \"shape\": " + shape_text(input.item) +
         augment_text(input.item) + "}},\n" +
         comment(classes
                     ? "The target: " + shown_count(std::ssize(target.values)) +
                           " classes."
                     : "The target: a number.",
                 "    ") +
         "    \"target\": " +
         (classes ? "{\"category\": {\"column\": " + quoted(job.target) + "}}"
                  : "{\"column\": " + quoted(job.target) +
                        ", \"standardize\": true}") +
         "\n  },\n"
         "  // Which rows are held out follows from their places.\n"
         "  \"split\": {\"train\": 0.8, \"val\": 0.2},\n"
         "  \"loader\": {\"batch_size\": " +
         std::to_string(batch_of(survey.rows, 64)) + "},\n" +
         model_text(input.item, "target") +
         train_line(survey.rows / 5,
                    "\"epochs\": 20, \"lr\": 0.002, \"warmup_ratio\": 0.1");
}

}  // namespace penstock
