#include "penstock/base/formatted.h"
#include "penstock/run/predict.h"

namespace penstock {

Json json_of(const Predicted& predicted, const std::string& out) {
  Json json;
  json["rows"] = predicted.rows;
  json["bad"] = predicted.bad;
  if (!predicted.metrics.object().empty()) json["metrics"] = predicted.metrics;
  if (!predicted.not_measured.empty())
    json["not_measured"] = predicted.not_measured;
  json["out"] = out.empty() ? Json() : Json(out);
  return json;
}

std::vector<std::string> notes_of(const Predicted& predicted) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> notes;
  if (!predicted.not_measured.empty())
    notes.push_back("the rows are not measured, since a target is not valid: " +
                    predicted.not_measured);
  for (std::size_t i = 0; i < predicted.bad_rows.size() && i < kShown; ++i) {
    const BadRow& row = predicted.bad_rows[i];
    notes.push_back("left out row " + row.shown_key + ", column '" +
                    row.column + "': " + row.why);
  }
  return notes;
}

std::string summary_of(const Predicted& predicted, const std::string& out) {
  std::string text = std::to_string(predicted.rows) +
                     (predicted.rows == 1 ? " row" : " rows") + " predicted";
  if (predicted.bad > 0)
    text += ", " + std::to_string(predicted.bad) + " left out";
  for (const auto& [name, value] : predicted.metrics.object())
    text += ", " + name + " " +
            (value.is_number() ? formatted("%.4g", value.number()) : "n/a");
  return out.empty() ? text : text + ": " + out;
}

std::string text_of_measures(const Predicted& predicted) {
  std::string text;
  for (const auto& [name, value] : predicted.metrics.object())
    text += formatted(
        "%-20s %s\n", name.c_str(),
        value.is_number() ? formatted("%.6g", value.number()).c_str() : "n/a");
  return text;
}

}  // namespace penstock
