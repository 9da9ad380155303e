#include "penstock/inspect/new_job.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "penstock/inspect/array_job.h"
#include "penstock/inspect/class_folder.h"
#include "penstock/inspect/job_text.h"
#include "penstock/inspect/text_job.h"

// Each column takes one way: into the one field of numbers, into a field of its
// own, or into the list of those that are left out, with the reason. The text
// is put together line by line, since JSON documents keep no comments.
namespace penstock {
namespace {

constexpr std::int64_t kRowsPerText = 4;  // on average, of a category
constexpr std::int64_t kSureOnBothSides = 20;
std::string shown_number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return text;
}

/// What becomes of the columns.
struct JobPlan {
  std::vector<const ColumnSurvey*> numbers, texts, times;
  std::vector<std::string> left_out;  // "\"name\": why"
};

/// Why a column that is not the target cannot be an input; empty: it can.
std::string reason_against(const ColumnSurvey& column, std::int64_t rows) {
  const std::int64_t present = rows - column.missing;
  if (!column.info.index.empty()) return column.info.index;
  if (column.info.primary_key) return "the key of the table";
  if (present == 0) return "no values";
  if (column.infinite > 0)
    return "infinite values in " + counted(column.infinite, "row");
  if (column.info.nested) return "holds " + column.info.declared;
  if (column.info.timestamp) return "";
  if (column.real() || column.integer()) {
    if (column.one_number()) return "a single value";
    if (column.integer() && column.counts_up && column.missing == 0)
      return "row numbers";
    return "";
  }
  if (column.boolean() || column.text()) {
    if (column.many_values)
      return "more than " +
             shown_count(static_cast<std::int64_t>(ColumnSurvey::kMostValues)) +
             " different texts";
    const std::int64_t different = std::ssize(column.values);
    if (different == 1 && column.missing == 0) return "a single value";
    if (column.text() && different * kRowsPerText > present)
      return counted(different, "different text") + " in " +
             counted(present, "row");
    return "";
  }
  return std::string(name_of(column.type)) +
         ", a type that is not chosen automatically";
}

JobPlan plan_of(const Survey& survey, const ColumnSurvey& target) {
  JobPlan plan;
  for (const ColumnSurvey& column : survey.columns) {
    if (&column == &target) continue;
    const std::string why = reason_against(column, survey.rows);
    if (!why.empty())
      plan.left_out.push_back(quoted(column.info.name) + " (" + why + ")");
    else if (column.info.timestamp)
      plan.times.push_back(&column);
    else if (column.text() || is_label(column))
      plan.texts.push_back(&column);
    else
      plan.numbers.push_back(&column);
  }
  return plan;
}

/// Names of fields, each once.
class FieldNames {
 public:
  std::string name(std::string wanted, bool masked = false) {
    while (taken_.contains(wanted) ||
           (masked && taken_.contains(wanted + "_mask")))
      wanted += "_";
    taken_.insert(wanted);
    if (masked) taken_.insert(wanted + "_mask");
    return wanted;
  }

 private:
  std::set<std::string> taken_ = {"", "weight", "__metadata__"};
};

const ColumnSurvey& target_of(const Survey& survey, const std::string& name) {
  auto found = std::ranges::find_if(
      survey.columns,
      [&](const ColumnSurvey& column) { return column.info.name == name; });
  if (found == survey.columns.end()) {
    std::vector<std::string> names;
    for (const ColumnSurvey& column : survey.columns)
      names.push_back(column.info.name);
    refuse_target(name, survey.shown + " has no such column",
                  did_you_mean(name, names));
  }
  const ColumnSurvey& target = *found;
  const std::int64_t present = survey.rows - target.missing;
  const std::string another = "name another column with --target";
  if (present == 0)
    refuse_target(name,
                  survey.rows == 0 ? survey.shown + " has no rows"
                                   : "the column holds no value",
                  another);
  if (target.info.timestamp ||
      !(target.text() || target.boolean() || target.integer() || target.real()))
    refuse_target(
        name,
        "the column holds " +
            (target.info.timestamp ? std::string("times")
                                   : std::string(name_of(target.type))) +
            ", expected texts, booleans or numbers",
        another);
  if (target.text() && (target.many_values ||
                        std::ssize(target.values) * kRowsPerText > present))
    refuse_target(
        name,
        "the column holds " +
            (target.many_values
                 ? "more than " + shown_count(static_cast<std::int64_t>(
                                      ColumnSurvey::kMostValues))
                 : shown_count(std::ssize(target.values))) +
            " different texts in " + counted(present, "row") +
            ", expected classes that repeat",
        another);
  const bool counted = is_class(target) && !target.many_values;
  if (counted ? std::ssize(target.values) < 2 : target.one_number())
    refuse_target(name, "all values are the same", another);
  return target;
}

std::string source_text(const SourceSpec& spec, const Survey& survey,
                        const ColumnSurvey& target) {
  std::vector<std::string> settings = settings_of(spec);
  std::string text = "  // Where the rows are.\n";
  if (target.missing > 0) {
    std::string column = target.info.name;
    for (std::size_t at = 0; (at = column.find('"', at)) != column.npos;
         at += 2)
      column.insert(at, "\"");
    text += comment(counted(target.missing, "row") + " without a value in " +
                        quoted(target.info.name) +
                        " cannot be used for training and " +
                        (target.missing == 1 ? "is" : "are") + " left out.",
                    "  ");
    if (spec.query.empty() && spec.where.empty())
      settings.push_back("\"where\": " +
                         quoted("\"" + column + "\" IS NOT NULL"));
  }
  if (survey.bad_rows > 0)
    text += comment(counted(survey.bad_rows, "row") +
                        " cannot be read completely ('penstock check' lists "
                        "them) and are left out.",
                    "  ");
  const bool in_the_way =
      target.missing > 0 &&
      (target.real() || !spec.query.empty() || !spec.where.empty());
  if (!spec.skip_bad &&
      (in_the_way || target.infinite > 0 || survey.bad_rows > 0))
    settings.push_back("\"on_bad\": \"skip\"");
  return text + source_line(settings);
}

/// "\"a\" (0 to 3), ...".
std::string numbers_text(const std::vector<const ColumnSurvey*>& numbers,
                         const std::string& name) {
  std::int64_t gaps = 0;
  std::vector<std::string> names;
  for (const ColumnSurvey* column : numbers) {
    gaps += column->missing > 0 ? 1 : 0;
    names.push_back(quoted(column->info.name));
  }
  std::string text = comment(
      "Numbers, standardised: (value - mean) / standard deviation over the "
      "train rows.",
      "    ");
  if (gaps > 0)
    text += comment("Values are missing in " + counted(gaps, "column") +
                        ": they become the mean, and a second tensor marks the "
                        "values that are present.",
                    "    ");
  text += "    " + quoted(name) + ": {\n" +
          lines_of(names, "      \"columns\": [", "                  ", ",") +
          "],\n      \"standardize\": true";
  if (gaps > 0) text += ", \"missing\": \"mask\"";
  return text + "}";
}

std::string category_text(const std::string& field, const ColumnSurvey& column,
                          bool unknown_is_error) {
  return "    " + quoted(field) +
         ": {\"category\": {\"column\": " + quoted(column.info.name) +
         (unknown_is_error ? ", \"unknown\": \"error\"}}" : "}}");
}

std::string time_text(const std::string& field, const ColumnSurvey& column) {
  return "    " + quoted(field) +
         ": {\"time\": {\"column\": " + quoted(column.info.name) +
         ",\n      \"parts\": [" + (column.whole_days ? "" : "\"hour\", ") +
         "\"weekday\", \"day_of_year\"]" +
         (column.missing > 0 ? ", \"missing\": \"mask\"}}" : "}}");
}

std::string target_text(const std::string& field, const ColumnSurvey& target) {
  if (!is_class(target))
    return comment("The target: numbers from " + shown_number(target.min) +
                       " to " + shown_number(target.max) + ", a regression.",
                   "    ") +
           "    " + quoted(field) +
           ": {\"column\": " + quoted(target.info.name) +
           ", \"standardize\": true}";
  std::int64_t rarest = INT64_MAX;
  for (const auto& [value, rows] : target.values)
    rarest = std::min(rarest, rows);
  // A class that no train row has would end the run, or be unknown.
  const bool without = is_label(target) && target.values.contains("-1");
  const bool sure = rarest >= kSureOnBothSides && !without;
  std::string about =
      "The target: " +
      shown_count(is_label(target) ? std::ssize(target.info.values)
                                   : std::ssize(target.values)) +
      " classes.";
  if ((target.integer() || target.real()) && !target.boolean() &&
      !is_label(target))
    about += " For a regression: {\"column\": " + quoted(target.info.name) +
             ", \"standardize\": true}.";
  if (without)
    about += " " + counted(target.values.find("-1")->second, "row") +
             " without one (-1) are not used.";
  else if (!sure)
    about += " The rarest has " + counted(rarest, "row") +
             ": rows of a class that no train row has are not used.";
  return comment(about, "    ") + category_text(field, target, sure);
}

std::string fields_text(const JobPlan& plan, const ColumnSurvey& target,
                        const std::string& target_field, FieldNames& names) {
  std::vector<std::string> fields;
  if (!plan.numbers.empty())
    fields.push_back(numbers_text(plan.numbers, names.name("numbers", true)));
  for (const ColumnSurvey* column : plan.texts)
    fields.push_back(
        comment((is_label(*column)
                     ? counted(std::ssize(column->info.values), "label")
                     : counted(std::ssize(column->values), "text")) +
                    "; an additional last class holds values that are " +
                    (column->missing > 0
                         ? "missing in " + counted(column->missing, "row") +
                               ", or unknown."
                         : "unknown."),
                "    ") +
        category_text(names.name(column->info.name), *column, false));
  for (const ColumnSurvey* column : plan.times)
    fields.push_back(
        comment(
            "Times, as the sine and cosine of their position in each cycle." +
                (column->missing > 0
                     ? " Times are missing in " +
                           counted(column->missing, "row") +
                           ": they become 0, and a second tensor marks them."
                     : std::string()),
            "    ") +
        time_text(names.name(column->info.name, column->missing > 0), *column));
  fields.push_back(target_text(target_field, target));
  std::string text =
      "  // The model's inputs, and the target. Numbers and booleans form "
      "one\n  // field; texts with at most 1,000 values, each in four rows or "
      "more on\n  // average, are classes; times are split into parts.\n";
  if (!plan.left_out.empty()) {
    text += comment("Left out: " + listed(plan.left_out) + ".", "  ");
  }
  text += "  \"fields\": {\n";
  for (std::size_t i = 0; i < fields.size(); ++i)
    text += fields[i] + (i + 1 < fields.size() ? ",\n" : "\n");
  return text + "  },\n";
}

/// Larger tables: larger batches, fewer epochs.
std::string training_text(std::int64_t rows, const std::string& target) {
  const std::int64_t train = std::max<std::int64_t>(1, rows * 4 / 5);
  std::int64_t batch = train >= 200'000   ? 1024
                       : train >= 100'000 ? 512
                       : train >= 10'000  ? 256
                       : train >= 1'000   ? 64
                                          : 32;
  batch = std::min(batch, std::max<std::int64_t>(1, train / 4));
  const std::int64_t epochs =
      std::clamp<std::int64_t>(3000 * batch / train, 8, 60);
  return "  // The keys or positions of rows decide which are held out.\n"
         "  \"split\": {\"train\": 0.8, \"val\": 0.2},\n"
         "  \"loader\": {\"batch_size\": " +
         std::to_string(batch) +
         "},\n"
         "  \"model\": {\"kind\": \"tabular\", \"target\": " +
         quoted(target) +
         ",\n            \"width\": 128, \"depth\": 3, \"dropout\": "
         "0.1},\n" +
         train_line(rows / 5, "\"epochs\": " + std::to_string(epochs) +
                                  ", \"lr\": 0.002");
}

}  // namespace

std::string new_job_text(const NewJob& job, StopFlag stop) {
  const SourceSpec& spec = job.source;
  if (spec.kind == "images")
    return image_job_text(job, class_folder(job, "pictures"));
  if (spec.kind == "audio")
    return sound_job_text(job, class_folder(job, "sounds"), stop);
  if (job.target.empty() && holds_texts(spec)) return text_job_text(job, stop);
  if (job.target.empty()) refuse_without_target(spec);
  if (spec.kind == "hdf5" && holds_arrays(spec))
    return array_job_text(job, stop);
  if (const std::optional<ClassTable> table = class_table(job, stop))
    return table->kind == "image" ? image_job_text(job, table->files)
                                  : sound_job_text(job, table->files, stop);
  const Survey survey = survey_rows(spec, stop);
  const ColumnSurvey& target = target_of(survey, job.target);
  const JobPlan plan = plan_of(survey, target);
  if (plan.numbers.empty() && plan.texts.empty() && plan.times.empty()) {
    std::string why = "no other column can be an input";
    for (const std::string& column : plan.left_out)
      why += (&column == &plan.left_out[0] ? ": " : ", ") + column;
    throw Error(
        ErrorKind::request,
        {.code = "init.no_inputs",
         .what = "cannot write a job that predicts column '" + job.target + "'",
         .where = survey.shown,
         .why = why,
         .next =
             "write the fields of the job yourself: docs/how-to/fields.md"});
  }
  FieldNames names;
  const std::string target_field = names.name(job.target, true);
  return begin_of_job("the " + counted(survey.rows, "row") + " of " +
                          quoted(survey.shown) + " hold",
                      job.name) +
         source_text(spec, survey, target) +
         fields_text(plan, target, target_field, names) +
         training_text(survey.rows - target.missing, target_field);
}

}  // namespace penstock
