#include "penstock/inspect/new_job.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "penstock/inspect/survey.h"

// Each column takes one way: into the one field of numbers, into a field of its
// own, or into the list of those that are left out, with the reason. The text
// is put together line by line, since JSON documents keep no comments.
namespace penstock {
namespace {

constexpr std::int64_t kFewIntegers =
    20;  // of a target, or whole numbers: classes
constexpr std::int64_t kRowsPerText = 4;  // on average, of a category
constexpr std::int64_t kSureOnBothSides = 20;
constexpr std::size_t kLineWidth = 76;

std::string quoted(const std::string& text) { return Json(text).dump(); }

/// 344 -> "344", 336776 -> "336,776".
std::string shown_count(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string counted(std::int64_t number, const std::string& what) {
  return shown_count(number) + " " + what + (number == 1 ? "" : "s");
}

std::string shown_number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return text;
}

/// Pieces with `between` after each but the last, in lines that fit.
std::string lines_of(const std::vector<std::string>& pieces,
                     const std::string& first, const std::string& next,
                     const std::string& between) {
  std::string all, line = first;
  bool begun = false;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::string piece =
        pieces[i] + (i + 1 < pieces.size() ? between : "");
    if (begun && line.size() + 1 + piece.size() > kLineWidth) {
      all += line + "\n";
      line = next;
      begun = false;
    }
    line += (begun ? " " : "") + piece;
    begun = true;
  }
  return all + line;
}

std::string comment(const std::string& text, const std::string& indent) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines_of(words, indent + "// ", indent + "// ", "") + "\n";
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

/// Integers that number classes with names; -1 means no sample.
bool is_label(const ColumnSurvey& column) {
  return column.integer() && !column.info.values.empty();
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

bool is_class(const ColumnSurvey& target) {
  if (target.text() || target.boolean() || is_label(target)) return true;
  const bool whole = target.integer() || (target.real() && target.whole);
  return whole && !target.many_values &&
         std::ssize(target.values) <= kFewIntegers;
}

[[noreturn]] void refuse_target(const std::string& name, std::string why,
                                std::string next) {
  throw Error(ErrorKind::request,
              {.code = "init.target",
               .what = "cannot write a job that predicts a column",
               .where = "column '" + name + "'",
               .why = std::move(why),
               .next = std::move(next)});
}

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

/// Those that are not as by default.
std::vector<std::string> settings_of(const SourceSpec& spec) {
  const Json ours = without_secrets_of_source(source_section(spec));
  const Json defaults =
      source_section(source_kind(spec.kind)->settings.defaults());
  std::vector<std::string> settings;
  for (const auto& [key, value] : ours.object()) {
    const Json* otherwise = defaults.find(key);
    if (key != "kind" && otherwise != nullptr && *otherwise == value) continue;
    settings.push_back(quoted(key) + ": " + value.dump());
  }
  return settings;
}

std::string source_line(const std::vector<std::string>& settings) {
  return lines_of(settings, "  \"source\": {", "             ", ",") + "},\n";
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
    std::string all = "Left out: ";
    for (std::size_t i = 0; i < plan.left_out.size(); ++i)
      all += (i == 0 ? "" : ", ") + plan.left_out[i];
    text += comment(all + ".", "  ");
  }
  text += "  \"fields\": {\n";
  for (std::size_t i = 0; i < fields.size(); ++i)
    text += fields[i] + (i + 1 < fields.size() ? ",\n" : "\n");
  return text + "  },\n";
}

// Of so few rows, none may be held out.
constexpr std::int64_t kLeastForPatience = 50;
constexpr const char* kPatience = ", \"patience\": 10";

std::string patience_comment(bool patience) {
  return std::string("  // The weights of the best epoch are kept") +
         (patience ? "; after 10 epochs without a better one the\n"
                     "  // training ends.\n"
                   : ".\n");
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
  const bool patience = rows >= kLeastForPatience;
  return "  // The keys or positions of rows decide which are held out.\n"
         "  \"split\": {\"train\": 0.8, \"val\": 0.2},\n"
         "  \"loader\": {\"batch_size\": " +
         std::to_string(batch) +
         "},\n"
         "  \"model\": {\"kind\": \"tabular\", \"target\": " +
         quoted(target) +
         ",\n            \"width\": 128, \"depth\": 3, \"dropout\": "
         "0.1},\n" +
         patience_comment(patience) +
         "  \"train\": {\"epochs\": " + std::to_string(epochs) +
         ", \"lr\": 0.002" + (patience ? kPatience : "") + "}\n";
}

std::string begin_of_job(const std::string& of_what, const std::string& name) {
  return comment("Written by penstock train --init from what " + of_what +
                     ". Change it as you like. To run it:",
                 "") +
         "//   penstock train " + name +
         "\n// All keys: penstock schema, docs/reference/job.\n{\n";
}

/// Of pictures: no row is read, since their classes are known.
std::string image_job_text(const SourceSpec& spec, const std::string& target,
                           const std::string& name) {
  const Schema schema = read_schema(spec);
  const ColumnInfo* classes = schema.find("class");
  if (target != "class")
    refuse_target(target, "for pictures, the target is their class",
                  "write --target class");
  if (classes == nullptr || classes->values.size() < 2)
    refuse_target(
        target,
        classes == nullptr || classes->values.empty()
            ? "'" + spec.path + "' has no classes"
            : "all pictures have the class '" + classes->values[0] + "'",
        "put the pictures of each class into one folder per class, or set "
        "\"labels\"");
  return begin_of_job("is in " + quoted(spec.path), name) +
         "  // Folders of pictures, one for each class.\n" +
         source_line(settings_of(spec)) +
         "  // 224 x 224 pixels; the model converts the bytes to floats.\n  "
         "\"fields\": {\n    \"image\": {\"image\": {\n      \"size\": 224,\n  "
         "    // Augmentation of training pictures: another part of each in "
         "every\n      // epoch, 8 to 100 % of its area. Without this line the "
         "middle is used,\n      // as it is for held-out pictures.\n      "
         "\"train\": \"random_resized_crop\",\n      // Half of them are "
         "mirrored. Remove this where left and right differ in\n      // "
         "meaning, as in letters or road signs.\n      \"flip\": 0.5}},\n" +
         comment("The target: " + shown_count(std::ssize(classes->values)) +
                     " classes.",
                 "    ") +
         "    \"class\": {\"category\": {\"column\": \"class\", \"unknown\": "
         "\"error\"}}\n  },\n"
         "  // The paths of pictures decide which are held out.\n"
         "  \"split\": {\"train\": 0.8, \"val\": 0.2},\n"
         "  \"loader\": {\"batch_size\": 32},\n"
         "  // To start from trained weights, set \"path\" to a state_dict of\n"
         "  // torchvision's resnet18.\n"
         "  \"model\": {\"kind\": \"image_classifier\", \"image\": \"image\",\n"
         "            \"target\": \"class\", \"network\": "
         "\"resnet18\"},\n" +
         patience_comment(true) +
         "  \"train\": {\"epochs\": 20, \"lr\": 0.001" + kPatience + "}\n}\n";
}

}  // namespace

std::string new_job_text(const SourceSpec& spec, const std::string& target_name,
                         const std::string& name, StopFlag stop) {
  if (spec.kind == "images") return image_job_text(spec, target_name, name);
  const Survey survey = survey_rows(spec, stop);
  const ColumnSurvey& target = target_of(survey, target_name);
  const JobPlan plan = plan_of(survey, target);
  if (plan.numbers.empty() && plan.texts.empty() && plan.times.empty()) {
    std::string why = "no other column can be an input";
    for (const std::string& column : plan.left_out)
      why += (&column == &plan.left_out[0] ? ": " : ", ") + column;
    throw Error(
        ErrorKind::request,
        {.code = "init.no_inputs",
         .what = "cannot write a job that predicts a column",
         .where = survey.shown,
         .why = why,
         .next =
             "write the fields of the job yourself: docs/how-to/fields.md"});
  }
  FieldNames names;
  const std::string target_field = names.name(target_name, true);
  return begin_of_job("the " + counted(survey.rows, "row") + " of " +
                          quoted(survey.shown) + " hold",
                      name) +
         source_text(spec, survey, target) +
         fields_text(plan, target, target_field, names) +
         training_text(survey.rows - target.missing, target_field) + "}\n";
}

}  // namespace penstock
