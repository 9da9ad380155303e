#include "penstock/session/classes.h"

#include <algorithm>
#include <optional>

#include "penstock/base/log.h"

namespace penstock {
namespace {

constexpr std::size_t kMostNamed = 4;  // fields, in a line

/// Rows of an unknown class.
struct UnknownRows {
  std::int64_t train = 0, others = 0;

  std::string text() const {
    std::string text;
    if (train > 0)
      text = std::to_string(train) + " train row" + (train == 1 ? "" : "s");
    if (others > 0)
      text += (text.empty() ? "" : " and ") + std::to_string(others) +
              " outside the train side";
    return text;
  }
};

std::int64_t count_in(const Json& statistics, const char* key) {
  const Json* found = statistics.find(key);
  return found == nullptr ? 0 : found->integer();
}

/// Sources whose classes were found over all of them have the same statistics.
UnknownRows unknown_rows(const std::string& field,
                         const std::vector<const FittedFields*>& rows) {
  UnknownRows all;
  const Json* first = nullptr;
  for (const FittedFields* of : rows) {
    const Json& found = of->statistics_of(field);
    if (first != nullptr && found == *first) continue;
    if (first == nullptr) first = &found;
    all.train += count_in(found, "unknown");
    all.others += count_in(found, "unknown_elsewhere");
  }
  return all;
}

/// The number of the unknown class; nullopt: none, or rows hold a
/// place for each class.
std::optional<std::size_t> unknown_class(const Field& field,
                                         const Json& statistics) {
  const std::optional<ClassFacts>& classes = field.kind->facts().classes;
  if (!classes || !classes->unknown || classes->one_hot ||
      !statistics.is_object())
    return std::nullopt;
  return statistics.find("classes")->array().size();
}

/// Empty: none.
std::string unknown_class_text(const Job& job, const Dataset& rows) {
  const std::vector<const FittedFields*> fitted = rows.facts().all_fitted();
  if (fitted.empty()) return {};
  const Json model = model_section(job.model);
  const Json* target = model.is_object() ? model.find("target") : nullptr;
  std::string fields, number;
  std::size_t found = 0;
  for (const Field& field : fitted[0]->fields) {
    if (target != nullptr && *target != Json(field.name)) continue;
    const auto at = unknown_class(field, fitted[0]->statistics_of(field.name));
    if (!at) continue;
    const std::string of_rows = unknown_rows(field.name, fitted).text();
    if (of_rows.empty() || ++found > kMostNamed) continue;
    number = std::to_string(*at);
    fields += (found == 1 ? "" : ", ") + std::string("'") + field.name +
              "' (class " + number + ": " + of_rows + ")";
  }
  if (found == 0) return {};
  if (found > kMostNamed)
    fields += " and " + std::to_string(found - kMostNamed) + " more";
  const std::string ignored =
      found == 1 ? "ignore_index=" + number : "that number as ignore_index";
  return target != nullptr
             ? "the target has an unknown class, the last: " + fields +
                   ". These rows get weight 0, like " + ignored +
                   " in a PyTorch loss. Set \"unknown\": \"error\" in the "
                   "field to reject such rows instead"
             : "rows of the unknown class, the last, occur in " + fields +
                   ". If the field is a target, pass " + ignored +
                   " to the loss, or set \"unknown\": \"error\" in the field "
                   "to reject such rows";
}

}  // namespace

std::vector<Json> classes_of(const std::string& field, const Dataset& rows) {
  std::vector<std::string> others;
  for (const FittedFields* of : rows.facts().all_fitted())
    for (const Field& one : of->fields) {
      std::vector<Json> names = class_names(one, of->statistics_of(one.name));
      if (names.empty()) continue;
      if (one.name == field) return names;
      if (std::ranges::count(others, one.name) == 0) others.push_back(one.name);
    }
  throw Error(ErrorKind::request,
              {.code = "fields.no_classes",
               .what = "cannot name the classes of a field",
               .where = "field '" + field + "'",
               .why = "the job has no category or multi_hot field of that name",
               .next = others.empty()
                           ? "give the job a field {\"category\": {\"column\": "
                             "...}}"
                           : did_you_mean(field, others)});
}

void tell_unknown_class(const Job& job, const Dataset& rows,
                        const std::function<void(const std::string&)>& note) {
  const std::string text = unknown_class_text(job, rows);
  if (text.empty()) return;
  note ? note(text) : log(LogLevel::warning, text);
}

}  // namespace penstock
