#include "penstock/report/outcomes_json.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/base64.h"
#include "penstock/base/json_path.h"
#include "penstock/report/known_key.h"
#include "penstock/report/png.h"

namespace penstock {
namespace {

constexpr std::int64_t kMostRates = 200;
constexpr double kMostPixels = 256;  // of a side of a picture

/// Names of the classes of the field that the model predicts; empty: it
/// predicts something else.
std::vector<Json> target_classes(const Job& job, const Dataset& rows) {
  const std::string target = text_in(model_section(job.model), {"target"});
  const auto& fitted = rows.facts().fitted;
  if (target.empty() || fitted == nullptr) return {};
  for (const Field& field : fitted->fields)
    if (field.name == target && field.kind->facts().classes)
      return class_names(field, fitted->statistics_of(field.name));
  return {};
}

/// A class by its name, also each of a list of them.
Json named(const Json& of, const std::vector<Json>& names) {
  if (of.is_array()) {
    Json all(Json::Array{});
    for (const Json& each : of.array()) all.push_back(named(each, names));
    return all;
  }
  if (!std::holds_alternative<std::int64_t>(of.value())) return of;
  const std::int64_t at = of.integer();
  return at >= 0 && at < std::ssize(names) ? names[static_cast<std::size_t>(at)]
                                           : of;
}

/// An object whose members `keys` are classes.
Json with_names(const Json& of, const std::vector<Json>& names,
                const std::vector<std::string>& keys) {
  Json made(Json::Object{});
  for (const auto& [key, value] : of.object())
    made[key] = std::ranges::find(keys, key) == keys.end()
                    ? value
                    : named(value, names);
  return made;
}

/// The pixels of a picture as a data URI; empty: they are not as the trainer
/// has them.
std::string picture_uri(const Json& picture) {
  const auto width = number_in(picture, {"width"}).value_or(0);
  const auto height = number_in(picture, {"height"}).value_or(0);
  const std::string digits = text_in(picture, {"rgb"});
  if (width < 1 || width > kMostPixels || height < 1 || height > kMostPixels ||
      digits.size() != static_cast<std::size_t>(width * height) * 6)
    return "";
  std::vector<std::uint8_t> rgb;
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    std::uint8_t byte = 0;
    std::from_chars(digits.data() + at, digits.data() + at + 2, byte, 16);
    rgb.push_back(byte);
  }
  return "data:image/png;base64," +
         base64_of(
             png_of(rgb, static_cast<int>(width), static_cast<int>(height)));
}

/// By its key, with names of classes, and its picture as a file.
Json worst_row(const Json& row, const std::vector<Json>& names,
               const Dataset& rows) {
  Json entry;
  entry["key"] = known_key_of(rows, row.find("sample")->integer());
  const Json shown = with_names(row, names, {"truth", "guess"});
  for (const auto& [key, value] : shown.object()) {
    if (key == "sample") continue;
    if (key != "picture")
      entry[key] = value;
    else if (std::string uri = picture_uri(value); !uri.empty())
      entry["thumbnail"] = std::move(uri);
  }
  return entry;
}

/// Of each validation: the keys of the rows whose beginning was continued.
Json with_keys(const Json& texts, const Dataset& rows) {
  Json all(Json::Array{});
  for (const Json& validation : texts.array()) {
    Json entry = validation;
    entry["texts"] = Json(Json::Array{});
    for (const Json& text : validation.find("texts")->array()) {
      Json& of = entry["texts"];
      Json with;
      with["key"] = known_key_of(rows, text.find("sample")->integer());
      for (const auto& [key, value] : text.object())
        if (key != "sample") with[key] = value;
      of.push_back(std::move(with));
    }
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace

void add_outcomes(const Json& details, const Job& job, const Dataset& rows,
                  Json& report) {
  if (!details.is_object()) return;
  const std::vector<Json> names = target_classes(job, rows);
  if (const Json* baseline = details.find("baseline"))
    report["baseline"] = with_names(*baseline, names, {"class"});
  if (const Json* confusion = details.find("confusion"))
    report["confusion"] = with_names(*confusion, names, {"classes"});
  if (const Json* residuals = details.find("residuals"))
    report["residuals"] = *residuals;
  if (const Json* classes = details.find("by_class")) {
    report["by_class"] = Json(Json::Array{});
    for (const Json& each : classes->array())
      report["by_class"].push_back(with_names(each, names, {"class"}));
  }
  if (const Json* worst = details.find("worst")) {
    report["worst_rows"] = Json(Json::Array{});
    for (const Json& row : worst->array())
      report["worst_rows"].push_back(worst_row(row, names, rows));
  }
  if (const Json* texts = details.find("texts"))
    report["texts"] = with_keys(*texts, rows);
}

Json learning_rate_json(const Job& job, std::int64_t steps) {
  if (job.model.none() || steps <= 0) return {};
  const Schedule schedule = schedule_of(job.model.learning, steps);
  Json json;
  json["peak"] = schedule.peak;
  json["points"] = Json(Json::Array{});
  const std::int64_t each = (steps - 1) / kMostRates + 1;
  for (std::int64_t step = 0; step < steps; step += each)
    json["points"].push_back(
        Json(Json::Array{step, learning_rate(schedule, step)}));
  return json;
}

}  // namespace penstock
