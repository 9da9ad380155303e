#include "penstock/report/folds.h"

#include <cmath>

#include "penstock/base/base.h"
#include "penstock/base/table_text.h"
#include "penstock/report/html_elements.h"
#include "penstock/report/report_facts.h"

namespace penstock {
namespace {

/// Of the validation that a run's kept weights had: the last one of its best
/// epoch, or where no weights are compared that at the end.
Json measures_of(const Json& report) {
  const auto best = number_in(report, {"best", "epoch"});
  Json measures{Json::Object{}};
  for (const Json& epoch : list_in(report, {"epochs"})) {
    if (best && number_in(epoch, {"epoch"}) != best) continue;
    for (const auto& [name, value] : epoch.object())
      if (name.starts_with("val_") && value.is_number())
        measures[name.substr(4)] = value;
  }
  // Several validations of that epoch may have followed the best one.
  if (const auto value = number_in(report, {"best", "value"}))
    measures[text_in(report, {"best", "metric"})] = *value;
  return measures;
}

/// In the order of the first fold.
std::vector<std::string> metrics_of(const Json& report) {
  std::vector<std::string> names;
  const Json::Array& folds = list_in(report, {"folds"});
  const Json* first = folds.empty() ? nullptr : found_in(folds[0], {"val"});
  if (first == nullptr || !first->is_object()) return names;
  for (const auto& [name, value] : first->object()) names.push_back(name);
  return names;
}

/// What `name` is in every fold; empty where one of them lacks it.
std::vector<double> numbers_of(const std::vector<Json>& outcomes,
                               const std::string& name) {
  std::vector<double> numbers;
  for (const Json& one : outcomes)
    if (const auto number = number_in(one, {"val", name}))
      numbers.push_back(*number);
  if (numbers.size() != outcomes.size()) numbers.clear();
  return numbers;
}

double mean_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (double number : numbers) sum += number;
  return sum / static_cast<double>(numbers.size());
}

Json spread_of(const std::vector<double>& numbers) {
  if (numbers.size() < 2) return {};
  const double mean = mean_of(numbers);
  double squares = 0;
  for (double number : numbers) squares += (number - mean) * (number - mean);
  return std::sqrt(squares / static_cast<double>(numbers.size() - 1));
}

/// Cells of the table, without marks: the head, the folds, mean and spread.
std::vector<std::vector<std::string>> cells_of(const Json& report) {
  const std::vector<std::string> metrics = metrics_of(report);
  std::vector<std::vector<std::string>> rows = {{"fold", "steps"}};
  for (const std::string& name : metrics) rows[0].push_back(spoken(name));
  for (const Json& fold : list_in(report, {"folds"})) {
    rows.push_back({shown_number(number_in(fold, {"fold"})),
                    shown_number(number_in(fold, {"steps"}))});
    for (const std::string& name : metrics)
      rows.back().push_back(shown_number(number_in(fold, {"val", name})));
  }
  for (const char* key : {"mean", "spread"}) {
    rows.push_back({key, ""});
    for (const std::string& name : metrics)
      rows.back().push_back(shown_number(number_in(report, {key, name})));
  }
  return rows;
}

}  // namespace

Json outcome_of_fold(const Json& report, std::int64_t fold) {
  Json outcome;
  outcome["fold"] = fold;
  outcome["run"] = text_in(report, {"run"});
  const Json* steps = report.find("steps");
  outcome["steps"] = steps == nullptr ? Json() : *steps;
  const Json* best = report.find("best");
  outcome["best"] = best == nullptr ? Json() : *best;
  outcome["val"] = measures_of(report);
  return outcome;
}

void add_folds(const std::vector<Json>& outcomes, Json& report) {
  report["folds"] = Json::Array{};
  report["mean"] = Json::Object{};
  report["spread"] = Json::Object{};
  for (const Json& one : outcomes) report["folds"].push_back(one);
  if (outcomes.empty()) return;
  for (const auto& [name, value] : outcomes[0].find("val")->object()) {
    const std::vector<double> numbers = numbers_of(outcomes, name);
    if (numbers.empty()) continue;
    report["mean"][name] = mean_of(numbers);
    report["spread"][name] = spread_of(numbers);
  }
}

bool has_folds(const Json& report) {
  const Json* folds = found_in(report, {"folds"});
  return folds != nullptr && folds->is_array();
}

std::string folds_text(const Json& report) {
  return table_text(cells_of(report)) + "runs: " + text_in(report, {"run"}) +
         "/folds\n";
}

std::string folds_html(const Json& report) {
  std::vector<std::vector<std::string>> rows = cells_of(report);
  for (auto& row : rows)
    for (std::string& cell : row) cell = escaped(cell);
  const std::string title =
      std::to_string(list_in(report, {"folds"}).size()) + " folds";
  std::string links;
  for (const Json& fold : list_in(report, {"folds"})) {
    const std::string number = shown_number(number_in(fold, {"fold"}));
    links += "<li><a href=\"folds/" + escaped(number) + "/report.html\">fold " +
             escaped(number) + "</a></li>";
  }
  return page(text_in(report, {"run"}) + ": " + title,
              "<header><p class=\"run\">" + escaped(text_in(report, {"run"})) +
                  "</p>\n<h1>" + title + "</h1>\n</header>\n" +
                  section("Validation", table(rows)) +
                  section("The page of each fold", "<ul>" + links + "</ul>"));
}

}  // namespace penstock
