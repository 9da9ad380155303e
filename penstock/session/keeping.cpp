#include "penstock/session/keeping.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "penstock/base/json_path.h"
#include "penstock/base/shown.h"
#include "penstock/session/stepper.h"

namespace penstock {
namespace {

[[noreturn]] void refuse_metric(const std::string& metric,
                                const Json& measured) {
  const Json reported = reported_measures(measured);
  const std::string list = listed(
      reported.object(), [](const auto& member) { return member.first; });
  throw Error(ErrorKind::request,
              {.code = "train.metric",
               .what = "cannot determine which weights are the best",
               .where = "train.metric",
               .why = "the model did not measure \"" + metric +
                      "\" of these rows; it measured " + list,
               .next = "name one of these"});
}

/// Classes that may be a truth in these rows; nullopt: the target is something
/// else, or its classes are not known yet.
std::optional<std::size_t> classes_of_target(const Job& job,
                                             const Dataset& rows) {
  const std::string target = text_in(model_section(job.model), {"target"});
  const auto field = std::ranges::find(job.fields, target, &Field::name);
  if (field == job.fields.end()) return std::nullopt;
  const FieldFacts& facts = field->kind->facts();
  if (facts.numbers && facts.numbers->dtype == Dtype::boolean) return 2;
  const auto fitted = rows.facts().fitted;
  if (!facts.one_class() || fitted == nullptr) return std::nullopt;
  std::vector<Json> names = class_names(*field, fitted->statistics_of(target));
  if (!names.empty() && names.back().is_null()) names.pop_back();  // unknown
  if (names.empty()) return std::nullopt;
  return names.size();
}

bool better(const std::string& metric, double value, double than) {
  const Metric* known = find_metric(metric);
  PENSTOCK_ASSERT(known != nullptr, "the job's metric was checked");
  return known->higher_is_better ? value > than : value < than;
}

}  // namespace

bool keeps_best(const Job& job, bool held_out) {
  return held_out && job.training.keep.value_or(Keep::best) != Keep::last;
}

bool keeps_last(const Job& job, bool held_out) {
  return !held_out || job.training.keep.value_or(Keep::best) != Keep::best;
}

void check_metric_of_rows(const Job& job, const Dataset& rows) {
  const std::string& metric = job.training.metric;
  const bool auc = metric == "auc", top5 = metric == "top5_accuracy";
  if (!auc && !top5) return;
  const std::optional<std::size_t> classes = classes_of_target(job, rows);
  if (!classes || (auc ? *classes == 2 : *classes > 5)) return;
  throw Error(ErrorKind::request,
              {.code = "train.metric",
               .what = "cannot determine which weights are the best",
               .where = "train.metric",
               .why = "\"" + metric + "\" needs " +
                      (auc ? "two classes" : "more than five classes") +
                      ", and the target has " + std::to_string(*classes),
               .next = "name another metric, such as \"accuracy\""});
}

bool is_best(const Job& job, const Json& measured, std::int64_t epoch,
             SavedState& state) {
  const std::string& metric = job.training.metric;
  const Json* value = measured.find("val_" + metric);
  if (value == nullptr && !measured.object().empty())
    refuse_metric(metric, measured);
  if (value == nullptr || !value->is_number() ||
      (state.best && !better(metric, value->number(), state.best->value))) {
    if (state.best) ++state.best->since;
    return false;
  }
  state.best = {.epoch = epoch,
                .step = state.steps_taken,
                .metric = metric,
                .value = value->number()};
  return true;
}

std::string forget_other_best(const Job& job, SavedState& state) {
  if (!state.best) return "";
  const std::string& metric = job.training.metric;
  std::string why;
  if (state.best->metric != metric)
    why = "it was compared by " + state.best->metric + ", and now by " + metric;
  else if (state.best->sha256.empty() && keeps_best(job, true))
    why = "its weights were not kept";
  if (why.empty()) return "";
  const std::string line = "the best validation so far (" +
                           text_of(*state.best) + ") counts no longer: " + why;
  state.best.reset();
  return line;
}

Json reported_measures(const Json& measured) {
  constexpr std::string_view kPrefix = "val_";
  Json reported{Json::Object{}};
  for (const auto& [name, value] : measured.object())
    reported[name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name] =
        value;
  return reported;
}

std::string measures_text(const Json& measured, std::string_view left_out) {
  std::string line;
  for (const auto& [key, value] : measured.object()) {
    if (key == left_out) continue;
    char number[32];
    std::snprintf(number, sizeof(number), "%.4g",
                  value.is_number() ? value.number() : 0.0);
    std::string name = key;
    std::ranges::replace(name, '_', ' ');
    line += (line.empty() ? "" : ", ") + name + " " +
            (value.is_number() ? number : "n/a");
  }
  return line;
}

std::string patience_text(const Best& best) {
  const std::string count =
      best.since == 1 ? "validation was"
                      : std::to_string(best.since) + " validations were";
  return "the last " + count + " not better than " + text_of(best);
}

std::string text_of(const Best& best) {
  char number[32];
  std::snprintf(number, sizeof(number), "%.4g", best.value);
  std::string name = best.metric;
  std::ranges::replace(name, '_', ' ');
  return "val " + name + " " + number + " after epoch " +
         std::to_string(best.epoch + 1) + ", step " + std::to_string(best.step);
}

}  // namespace penstock
