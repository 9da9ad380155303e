#include "penstock/inspect/job_text.h"

#include <algorithm>

#include "penstock/base/error.h"

namespace penstock {
namespace {

constexpr std::size_t kLineWidth = 76;

constexpr std::int64_t kFewIntegers =
    20;  // of a target, or whole numbers: classes

// Of fewer rows than ten times these, none may be held out.
constexpr std::int64_t kHeldOutForPatience = 10;

}  // namespace

std::string quoted(const std::string& text) { return Json(text).dump(); }

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

std::string begin_of_job(const std::string& of_what, const std::string& name) {
  return comment("Written by penstock train --init from what " + of_what +
                     ". Change it as you like. To run it:",
                 "") +
         "//   penstock train " + name +
         "\n// All keys: penstock schema, docs/reference/job.\n{\n";
}

bool is_label(const ColumnSurvey& column) {
  return column.integer() && !column.info.values.empty();
}

bool is_class(const ColumnSurvey& target) {
  if (target.text() || target.boolean() || is_label(target)) return true;
  const bool whole = target.integer() || (target.real() && target.whole);
  return whole && !target.many_values &&
         std::ssize(target.values) <= kFewIntegers;
}

void refuse_target(const std::string& name, std::string why, std::string next) {
  throw Error(ErrorKind::request,
              {.code = "init.target",
               .what = "cannot write a job that predicts a column",
               .where = "column '" + name + "'",
               .why = std::move(why),
               .next = std::move(next)});
}

std::string train_line(std::int64_t held_out, const std::string& settings) {
  const bool patience = held_out >= kHeldOutForPatience;
  return std::string("  // The weights of the best validation are kept") +
         (patience ? ". Training ends after 10\n"
                     "  // validations without a better one.\n"
                   : ".\n") +
         "  \"train\": {" + settings + (patience ? ", \"patience\": 10" : "") +
         "}\n}\n";
}

std::int64_t batch_of(std::int64_t rows, std::int64_t most) {
  const std::int64_t train = rows * 4 / 5;
  return std::clamp<std::int64_t>(train / 4, 1, most);
}

void refuse_without_target(const SourceSpec& spec) {
  std::vector<std::string> names;
  for (const ColumnInfo& column : surveyed_schema(spec).columns)
    names.push_back(column.name);
  constexpr std::size_t kMost = 20;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i)
    list += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMost) list += ", ...";
  throw Error(ErrorKind::request,
              {.code = "init.target",
               .what = "cannot write a job that predicts a column",
               .where = "--target",
               .why = "the column to be predicted is not named",
               .next = "name the column with --target: " + list});
}

}  // namespace penstock
